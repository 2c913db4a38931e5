"""`xmpp-bridge check` and `xmppCheck` of several rooms, against real servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.checking import IN_THE_ROOM, STAGE, STAGES, run
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

CUT_SHORT = {"members only": ["disco", "join"], "no room service": ["disco"]}


@asynccontextmanager
async def three_rooms(server: XmppServer) -> AsyncIterator[tuple[str, str, str]]:
    """Yield a room for members only, an address that is no room service, and a room that is well.

    Wilma is in the last.
    """
    closed, nowhere, well = server.room(), f"room@{server.domain}", server.room()
    async with (
        Witness(server, server.witness, closed, "Owner") as owner,
        Witness(server, server.witness, well, "Wilma"),
    ):
        form = await owner.muc.get_room_config(closed)
        form.set_values({"muc#roomconfig_membersonly": "1"})
        await owner.muc.set_room_config(closed, form)
        yield closed, nowhere, well


def headed(lines: list[str], rooms: tuple[str, ...]) -> list[str]:
    """The stages and the rooms that stand at the left edge, in order."""
    return [
        one[1] if (one := STAGE.fullmatch(line)) else line
        for line in lines
        if STAGE.fullmatch(line) or line in rooms
    ]


async def test_every_room_is_visited_and_one_that_is_not_well_fails_the_check(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with three_rooms(prosody) as rooms:
        environment = prosody.environment(MUC_ROOM=",".join(rooms))
        code, checking = await run(tmp_path, environment)
    assert code == 1
    lines = checking.out.splitlines()
    assert lines[0] == "Checking the way into 3 rooms"
    expected = [
        *STAGES,
        *(rooms[0], *CUT_SHORT["members only"]),
        *(rooms[1], *CUT_SHORT["no room service"]),
        *(rooms[2], *IN_THE_ROOM),
    ]
    assert headed(lines, rooms) == expected
    assert not [line for line in lines if line.endswith("...")]
    shown = " ".join(line.strip() for line in lines)
    assert f"2 of 3 rooms failed. {rooms[0]}: " in shown
    assert "[registration-required] " in shown
