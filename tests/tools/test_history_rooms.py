"""xmppHistory where the bridge has several rooms."""

import pytest

from bridge.xmpp.model.events import (
    ConnectionChanged,
    Phase,
)
from bridge.xmpp.model.journal import Journal
from tests.tools.looking import bodies, page_of
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    Played,
    in_rooms,
)


def _talking() -> Played:
    """A participant in three rooms, in two of which something was said while it reconnected."""
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    played.hear("one")
    played.hear("two", room=LOGS)
    played.publish(ConnectionChanged(Phase.WAITING, FAULT), "")
    played.publish(ConnectionChanged(Phase.JOINING), LOGS)
    played.hear("three", room=LOGS)
    played.hear("four")
    return played


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({}, [(ROOM, "one"), (LOGS, "two"), None, (LOGS, "three"), (ROOM, "four")]),
        ({"room": ROOM}, [(ROOM, "one"), (ROOM, "four")]),
        ({"room": "LOGS"}, [(LOGS, "two"), (LOGS, "three")]),
        ({"room": OTHER_LOBBY}, []),
        ({"room": LOGS, "limit": 1}, [(LOGS, "three")]),
        ({"room": LOGS, "since": "epoch-2"}, [(LOGS, "three")]),
        ({"room": LOGS, "since": "epoch-1", "limit": 1}, [(LOGS, "two")]),
        ({"room": LOGS, "contains": "e", "kinds": ["message"]}, [(LOGS, "three")]),
        ({"room": LOGS, "kinds": ["connection"]}, [(LOGS, "")]),
        ({"kinds": ["connection"]}, [None, (LOGS, "")]),
    ],
)
async def test_of_several_rooms_all_are_told_of_or_the_one_that_is_named(
    given_: dict[str, object], told: list[tuple[str, str] | None]
) -> None:
    page = await page_of(_talking(), **given_)
    assert [
        (one["room"], one.get("body", "")) if "room" in one else None for one in page["entries"]
    ] == told


async def test_with_one_room_no_entry_names_it() -> None:
    played = Played()
    played.hear("hello")
    for given_ in ({}, {"room": ROOM}, {"room": "lobby"}):
        (entry,) = (await page_of(played, **given_))["entries"]
        assert (entry["body"], "room" in entry) == ("hello", False)


async def test_what_one_room_has_lost_is_no_gap_in_another() -> None:
    played = in_rooms(ROOM, LOGS)
    played.journal = Journal("epoch", 10)
    played.journal.share_among((ROOM, LOGS))
    played.hear("kept", room=LOGS)
    played.hear(*map(str, range(30)))
    page = await page_of(played, room=LOGS, since="epoch-0")
    assert (bodies(page), page.get("gap"), page["oldest"]) == (["kept"], None, "epoch-0")
    assert (await page_of(played, room=ROOM, since="epoch-0"))["gap"]["reason"] == "evicted"
    assert (await page_of(played, since="epoch-0"))["gap"]["reason"] == "evicted"
