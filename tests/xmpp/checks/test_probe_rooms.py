"""The check of several rooms: one connection, a visit to each, and a fault in one only there."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from time import monotonic

import pytest

from bridge.xmpp.checks import probe
from bridge.xmpp.checks.probe import MESSAGE
from bridge.xmpp.checks.report import CONNECTION_STAGES, CheckedRoom, CheckStage, Report
from bridge.xmpp.link.connection import DEADLINES
from bridge.xmpp.model.faults import Stage
from bridge.xmpp.muc import roomservice
from tests.faults import scripted_server as scripted
from tests.faults.scene import configure
from tests.faults.scripted_server import HONEST, Script, ScriptedServer, Wire
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.xmpp.probing import check, settings

IN_A_ROOM = ["disco", "join", "occupants", "leave"]
LOBBY, LOGS, TEAM = (f"{name}@conference.localhost" for name in ("lobby", "logs", "team"))
ROOMS = ",".join((LOBBY, LOGS, TEAM))


def stages(report: Report) -> list[tuple[str, str | None, bool]]:
    return [(each.name, each.room, each.ok) for each in report.phases]


def of(report: Report, room: str) -> dict[str, CheckStage]:
    return {each.name: each for each in report.phases if each.room == room}


async def test_a_room_that_refuses_us_keeps_us_from_no_other(real_server: XmppServer) -> None:
    rooms = [real_server.room() for _ in range(3)]
    environment = real_server.environment(MUC_ROOM=",".join(rooms), MCP_BOT_NICKNAME="Beetle")
    async with AsyncExitStack() as stack:
        closed, banning, wilma = [
            await stack.enter_async_context(
                Witness(real_server, real_server.witness, room, "Wilma")
            )
            for room in rooms
        ]
        await configure(closed, membersonly="1")
        await banning.muc.set_affiliation(rooms[1], "outcast", jid=real_server.bot.jid)
        report = await check(environment, send=True)
        said = await wilma.heard(MESSAGE)
        await wilma.left(said.nick)
        # Who is let into no room is seen in none.
        for witness in (closed, banning):
            witness.say("the end")
            assert (await witness.heard(lambda each: True)).body == "the end"
            assert not [each for each in witness.occupants if each.startswith("Beetle")]
    assert stages(report)[len(CONNECTION_STAGES) :] == [
        ("disco", rooms[0], True),
        ("join", rooms[0], False),
        ("disco", rooms[1], True),
        ("join", rooms[1], False),
        *((name, rooms[2], True) for name in (*IN_A_ROOM[:-1], "send", "leave")),
    ]
    assert "membersonly" in of(report, rooms[0])["disco"].detail
    assert "members only" in of(report, rooms[0])["join"].detail
    assert "banned" in of(report, rooms[1])["join"].detail
    assert report.diagnosis.startswith(f"2 of 3 rooms failed. {rooms[0]}: ")
    assert f" {rooms[1]}: " in report.diagnosis
    assert rooms[2] not in report.diagnosis
    assert (report.ok, report.condition) == (False, "registration-required")
    assert report.rooms == [
        CheckedRoom(rooms[0], False, "registration-required"),
        CheckedRoom(rooms[1], False, "forbidden"),
        CheckedRoom(rooms[2], True, None),
    ]


def with_rooms(*silent: str, cut_after: str = "") -> Script:
    """Rooms of which some do not let us in, and one ends the connection at a message."""

    async def join(wire: Wire) -> None:
        nickname = ""
        while True:
            element = await wire.element("presence", "message")
            room, _, resource = element.get("to", "").partition("/")
            if scripted.local(element) == "message":
                if room == cut_after:
                    wire.abort()
                wire.send(scripted.said(nickname, MESSAGE, element.get("id", ""), room=room))
            elif element.get("type") == "unavailable":
                user = f"<x xmlns='{scripted.MUC_USER}'><status code='110'/></x>"
                left = f"<presence type='unavailable' from='{element.get('to')}'>{user}</presence>"
                wire.send(left)
            elif room not in silent:
                nickname = resource
                wire.send(scripted.present(nickname, 110, room=room))

    return replace(HONEST, join=join)


async def test_a_silent_room_is_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(with_rooms(LOGS)) as server:
        monkeypatch.setitem(DEADLINES, Stage.JOIN, 0.1)
        password = "open-sesame-0815"
        environment = server.environment(MUC_ROOM=ROOMS, MUC_PASSWORD=password)
        report = await probe.probe(settings(environment))
        heard = server.heard.decode()
    # The password is for the default room only.
    joins = [part for part in heard.split("<presence ")[1:] if "unavailable" not in part]
    assert [password in part for part in joins] == [True, False, False]
    assert password not in repr(report)
    assert stages(report)[len(CONNECTION_STAGES) :] == [
        *((name, LOBBY, True) for name in IN_A_ROOM),
        ("disco", LOGS, True),
        ("join", LOGS, False),
        *((name, TEAM, True) for name in IN_A_ROOM),
    ]
    assert report.rooms is not None
    assert [each.condition for each in report.rooms] == [None, "service-unavailable", None]
    # Should it let us in after all, it has our goodbye: one to each room, before the next.
    goodbyes = [f'to="{room}/' for room in (LOBBY, LOGS, TEAM)]
    left = [part.partition("<")[0] for part in heard.split("<presence ")[1:]]
    assert [room in part for part in left if "unavailable" in part for room in goodbyes] == [
        *(True, False, False),
        *(False, True, False),
        *(False, False, True),
    ]


async def test_where_the_connection_ends_the_other_rooms_are_not_visited() -> None:
    async with ScriptedServer(with_rooms(cut_after=LOGS)) as server:
        report = await probe.probe(settings(server.environment(MUC_ROOM=ROOMS)), send=True)
    assert stages(report)[-1] == ("send", LOGS, False)
    assert report.diagnosis.startswith(f"1 of 3 rooms failed. {LOGS}: ")
    assert report.diagnosis.endswith(f" Not visited: {TEAM}.")
    assert report.rooms is not None
    assert [each.condition for each in report.rooms] == [None, *["connection-reset"] * 2]


async def test_where_the_time_is_over_no_other_is_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(with_rooms(LOGS)) as server:
        monkeypatch.setattr(roomservice, "DISCO_SECONDS", 0.1)
        monkeypatch.setattr(probe, "CHECK_SECONDS", 2.0)
        started = monotonic()
        report = await probe.probe(settings(server.environment(MUC_ROOM=ROOMS)))
        assert monotonic() - started < 9.0
    assert stages(report)[-1] == ("join", LOGS, False)
    assert "given up after 2 s, at the step join" in report.diagnosis
    assert report.diagnosis.endswith(f" Not visited: {TEAM}.")
    assert report.rooms is not None
    assert [each.ok for each in report.rooms] == [True, False, False]


async def test_a_check_that_is_cancelled_leaves_the_room_that_it_is_in_and_hangs_up() -> None:
    said = asyncio.Event()
    gone = asyncio.Event()

    async def join(wire: Wire) -> None:
        element = await wire.element("presence")
        room, _, nickname = element.get("to", "").partition("/")
        wire.send(scripted.present(nickname, 110, room=room))
        await wire.element("message")
        said.set()
        element = await wire.element("presence")
        assert (element.get("type"), element.get("to")) == ("unavailable", f"{room}/{nickname}")
        try:
            await wire.gone()
        finally:
            gone.set()

    async with ScriptedServer(replace(HONEST, join=join)) as server, asyncio.timeout(10.0):
        read = settings(server.environment(MUC_ROOM=ROOMS))
        checking = asyncio.create_task(probe.probe(read, send=True))
        await said.wait()
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking
        await gone.wait()


@pytest.mark.parametrize("whose", ["another's", "ours"])
async def test_a_nickname_that_another_account_has_is_a_remark(
    real_server: XmppServer, whose: str
) -> None:
    room = real_server.room()
    account = real_server.witness if whose == "another's" else real_server.bot
    environment = real_server.environment(MUC_ROOM=room, MCP_BOT_NICKNAME="Beetle")
    async with Witness(real_server, account, room, "Beetle") as beetle:
        await configure(beetle, whois="anyone")
        report = await check(environment)
    assert report.ok
    taken = 'The nickname "Beetle" is taken: the bridge enters as "Beetle-2".'
    assert (taken in report.diagnosis) is (whose == "another's")


async def test_a_room_in_which_we_have_no_voice_is_not_said_to_work(prosody: XmppServer) -> None:
    room = prosody.room()
    async with Witness(prosody, prosody.witness, room, "Wilma") as wilma:
        await configure(wilma, moderatedroom="1")
        report = await check(prosody.environment(MUC_ROOM=room))
    assert report.ok
    assert "Everything works" not in report.diagnosis
    assert f"Without voice in {room}" in report.diagnosis
