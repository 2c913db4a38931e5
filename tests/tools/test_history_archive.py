"""`xmppHistory` with `archive: true`, over an archive of ten thousand messages."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.errors import ToolError
from bridge.tools.entries import NOTICE
from bridge.tools.history import xmpp_history
from bridge.tools.link import RoomLink
from tests.tools.played import LOGS, ROOM, Played, arguments, wire
from tests.xmpp.played_archive import Endless, Lazy

SCHEMA = Draft202012Validator(xmpp_history.output_schema)
MAX_PAGE_BYTES = 9_000
"""As the contract has it, where no other size is asked for."""
START = "1970-01-01T00:00:00Z"
"""Before everything."""


class ArchiveResult(Played):
    """A participant in a room with such an archive."""

    kept = Lazy(Endless(10_000))

    @property
    def connection(self) -> Any:
        return self.kept


async def _page(link: RoomLink, **given: Any) -> dict[str, Any]:
    given = {"archive": True, **given}
    page = wire(await xmpp_history(link, **arguments(xmpp_history, given)))
    SCHEMA.validate(page)
    assert page.get("notice") == (NOTICE if page["entries"] else None)
    assert not {"oldest", "gap"} & set(page)
    assert len(json.dumps(page)) <= given.get("maxBytes", MAX_PAGE_BYTES)
    assert {one["source"] for one in page["entries"]} <= {"archive"}
    return page


def _numbers(page: dict[str, Any]) -> list[int]:
    return [int(one["body"].split()[1]) for one in page["entries"]]


async def test_what_one_of_many_said_is_found_once_and_in_order_page_by_page() -> None:
    link = ArchiveResult().link
    wanted: dict[str, object] = {"from": "Fred", "after": START, "limit": 4}
    page = await _page(link, **wanted)
    told = _numbers(page)
    while page["more"]:
        page = await _page(link, since=page["next"], **wanted)
        assert len(page["entries"]) <= 4
        told += _numbers(page)
    assert told == list(range(0, 10_000, 1_000))
    assert page["next"] == "archive:id-9999"
    assert {one["sender"] for one in page["entries"]} == {"Fred"}
    (full,) = (await _page(link, detail="full", **wanted | {"limit": 1}))["entries"]
    assert full["from"] == f"{ROOM}/Fred"


async def test_the_archive_is_read_from_its_beginning_where_the_oldest_is_asked_for() -> None:
    page = await _page(ArchiveResult().link, since="oldest", limit=2)
    assert _numbers(page) == [0, 1]


async def test_of_several_rooms_the_archive_of_one_is_asked_which_each_entry_names() -> None:
    played = ArchiveResult(further=(Played(room_jid=LOGS),))
    for room in (None, ROOM, "lobby"):
        page = await _page(played.link, limit=3, room=room)
        assert [one["room"] for one in page["entries"]] == [ROOM] * 3
    with pytest.raises(ToolError, match=f"Not in the room {LOGS} "):
        await _page(played.link, room="logs")
    (entry,) = (await _page(ArchiveResult().link, limit=1))["entries"]
    assert "room" not in entry
