"""The stanza behind each event of the store, and who was there before the page begins."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bridge.page.chronicle import MAX_WEIGHT, Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import ID_SECONDS, STANZA_SECONDS, RecordedPage, StanzasBehind
from bridge.page.timeline import MAX_EVENTS
from bridge.store.database import Recorded
from bridge.text import iso
from tests.store.shelf import NIGHTLY, ROOM

STANZAS = {
    "asked": f"<message to='{ROOM}' id='7'/>",
    "heard": f"<message from='{ROOM}/Ann' id='7'/>",
    "refused": f"<message from='{ROOM}' type='error' id='7'/>",
    "subject": f"<message from='{ROOM}/Bob' id='8'><subject/></message>",
    "config": f"<message from='{ROOM}'><x/></message>",
    "here": f"<presence from='{ROOM}/Ann'/>",
    "no entry": f"<presence from='{ROOM}/{NIGHTLY.nickname}' type='error'/>",
}


def row(at: float, room: str = ROOM, **exact: Any) -> Recorded:
    return Recorded(1, at, room, exact, NIGHTLY, shared=True)


def behind(at: float, **exact: Any) -> list[str]:
    """The names of the stanzas behind an event; all stanzas came after 100 seconds."""
    kept = StanzasBehind()
    for xml in STANZAS.values():
        direction = "out" if " to=" in xml else "in"
        kept.take(row(100.0, "", kind="stanza", direction=direction, xml=xml))
    names = {xml: name for name, xml in STANZAS.items()}
    return [names[xml] for xml in kept.behind(row(at, **exact))]


SAID = {"kind": "message", "direction": "in", "sender": "Ann", "from": f"{ROOM}/Ann"}
HERE = {"kind": "join", "direction": "in", "sender": "Ann", "from": f"{ROOM.upper()}/Ann"}


@pytest.mark.parametrize(
    ("exact", "names"),
    [
        ({"kind": "message", "direction": "out", "id": "7"}, ["asked"]),
        ({**SAID, "id": "7"}, ["asked", "heard"]),
        (SAID, ["heard"]),
        ({**SAID, "id": "6"}, []),
        ({"kind": "error", "direction": "in", "id": "7"}, ["asked", "refused"]),
        ({**SAID, "kind": "error", "id": "7"}, ["heard"]),
        ({"kind": "error", "direction": "in", "condition": "forbidden"}, ["no entry"]),
        ({"kind": "subject", "sender": "Bob"}, ["subject"]),
        ({"kind": "config"}, ["refused"]),
        (HERE, ["here"]),
        ({**HERE, "kind": "leave"}, ["here"]),
        ({"kind": "gap"}, []),
        ({"kind": "connection"}, []),
    ],
)
def test_the_stanza_behind_an_event_is_found_by_what_both_name(
    exact: dict[str, Any], names: list[str]
) -> None:
    assert behind(100.0, **exact) == names


@pytest.mark.parametrize(
    ("exact", "seconds"), [(HERE, STANZA_SECONDS), ({**SAID, "id": "7"}, ID_SECONDS)]
)
def test_a_stanza_of_another_time_is_not_behind_it(exact: dict[str, Any], seconds: float) -> None:
    assert behind(100.0 + seconds, **exact)
    assert not behind(100.1 + seconds, **exact)


def test_the_nearest_of_several_is_behind_it() -> None:
    kept = StanzasBehind()
    for number in range(5):
        xml = f"<presence from='{ROOM}/Ann' id='{number}'/>"
        kept.take(row(100 + number / 10, "", kind="stanza", direction="in", xml=xml))
    assert [kept.behind(row(at, **HERE))[0][-4] for at in (99.9, 100.04, 100.21, 100.9)] == [
        *"0024"
    ]


def test_of_very_many_stanzas_the_newest_are_kept() -> None:
    kept = StanzasBehind()
    long = "x" * (MAX_WEIGHT // 2)
    for number in range(2 * MAX_EVENTS + 1):
        xml = f"<presence from='{ROOM}/n{number}'/>"
        kept.take(row(1.0, "", kind="stanza", direction="in", xml=xml))
    here = {"kind": "join", "from": f"{ROOM}/n0"}
    assert not kept.behind(row(1.0, **here))
    kept = StanzasBehind()
    for name in ("a", "b", "c"):
        xml = f"<presence from='{ROOM}/{name}'>{long}</presence>"
        kept.take(row(1.0, "", kind="stanza", direction="in", xml=xml))
    stanzas = {
        name: kept.behind(row(1.0, kind="join", **{"from": f"{ROOM}/{name}"})) for name in "abc"
    }
    assert [bool(xml) for xml in stanzas.values()] == [False, False, True]


class Walk:
    def __init__(self, rows: list[Recorded]) -> None:
        self._rows = rows

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        for each in self._rows:
            yield each


async def test_who_came_before_the_page_begins_is_on_it_with_the_time() -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    asked: list[dict[str, Any]] = []

    async def walk(_: object, **options: Any) -> Any:
        asked.append(options)
        came = [
            row(5.0, **{**HERE, "sender": name, "role": "", "affiliation": ""}) for name in "BA"
        ]
        return Walk([] if options.get("stanzas") else came)

    await page.look_back(walk, iso(60), None)
    page.take(row(61.0, **SAID, body="hi", source="live", type="groupchat", id="1"))
    (part,) = page.timeline(99.0).parts
    assert [(lane.name, lane.spans[0].from_) for lane in part.lanes][:2] == [
        ("A", 5_000),
        ("B", 5_000),
    ]
    assert part.from_ == 61_000
    assert asked[1] == {"end": iso(60), "backward": True}


def test_a_lost_connection_ends_our_lane_in_the_room() -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    ours: dict[str, Any] = {"from": f"{ROOM}/Us", "sender": "Us", "self": True}
    page.take(row(1.0, **{**HERE, **ours, "role": "none", "affiliation": "none"}))
    page.take(row(2.0, kind="connection", **ours))
    page.take(row(3.0, "", kind="connection", phase="waiting"))
    room, _ = page.timeline(9.0).parts
    assert [(lane.name, lane.spans[-1].to) for lane in room.lanes] == [("Us", 3_000)]
