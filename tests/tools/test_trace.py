from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.mcp.errors import ArgumentError
from bridge.tools.entries import MAX_BODY_BYTES
from bridge.tools.paging import MAX_BYTES
from bridge.tools.trace import LOST_STANZA, NO_STANZA, xmpp_trace
from bridge.xmpp.link.trace import CAPACITY, Direction
from bridge.xmpp.model.events import ConnectionChanged, Gap, Phase
from bridge.xmpp.model.journal import Journal
from tests.tools.played import LOGS, OTHER_LOBBY, ROOM, Played, in_rooms, page_of
from tests.xmpp.elements import append


def _message(body: str) -> Element:
    message = Element("{jabber:client}message", {"type": "groupchat"})
    SubElement(message, "{jabber:client}body").text = body
    return message


async def test_a_stanza_is_shown_as_it_went_over_the_wire() -> None:
    played = Played()
    append(played.trace, "out", "1", _message("a < b & c"), 1.5)
    xml = '<message type="groupchat"><body>a &lt; b &amp; c</body></message>'
    (entry,) = (await page_of(played, xmpp_trace))["entries"]
    assert entry == {
        "cursor": "epoch-1",
        "at": "1970-01-01T00:00:01.500Z",
        "direction": "out",
        "bytes": len(xml),
        "connection": "1",
        "xml": xml,
    }


async def test_what_is_looked_for_is_found_whatever_its_case() -> None:
    played = Played()
    for body in ("Straße", "other"):
        append(played.trace, "in", "1", _message(body), 0.0)
    append(played.trace, "out", "1", "<stream:stream>", 0.0)
    for text in ("STRASSE", "<BODY>stra"):
        (entry,) = (await page_of(played, xmpp_trace, contains=text))["entries"]
        assert "Straße" in entry["xml"]
    assert (await page_of(played, xmpp_trace, contains="stream", direction="in"))["entries"] == []
    assert (
        len((await page_of(played, xmpp_trace, contains="stream", direction="out"))["entries"]) == 1
    )


async def test_long_stanzas_are_cut_and_hidden_characters_shown() -> None:
    played = Played()
    append(played.trace, "in", "1", _message("x" * 60_000), 0.0)
    append(played.trace, "in", "1", _message("a\u202eb"), 0.0)
    long, hidden = (await page_of(played, xmpp_trace, maxBytes=MAX_BYTES))["entries"]
    assert long["truncated"] is True
    assert long["bytes"] > 60_000
    assert len(long["xml"]) == MAX_BODY_BYTES
    assert "a\\u{202E}b" in hidden["xml"]
    assert hidden["escaped"] is True


async def test_what_is_lost_is_told_and_what_is_left_can_be_reached() -> None:
    played = Played(journal=Journal("epoch"))
    for number in range(CAPACITY + 2):
        append(played.trace, "in", "1", _message(str(number)), 0.0)
    page = await page_of(played, xmpp_trace, since="epoch-0")
    assert page["gap"] == {"from": 1, "to": 2, "reason": "evicted"}
    newest = await page_of(played, xmpp_trace)
    assert newest["more"] is True
    assert (await page_of(played, xmpp_trace, since=newest["oldest"], limit=1))["entries"][0][
        "xml"
    ] == ('<message type="groupchat"><body>2</body></message>')
    first = await page_of(played, xmpp_trace, since="oldest", limit=1)
    assert (first["gap"]["to"], first["entries"][0]["cursor"]) == (2, "epoch-3")
    restarted = await page_of(played, xmpp_trace, since="former-3")
    assert restarted["gap"] == {"from": 4, "to": 2, "reason": "restarted"}
    with pytest.raises(ArgumentError, match="ahead"):
        await page_of(played, xmpp_trace, since="epoch-9999")


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (None, ["from lobby", "to logs", "from logs", "from account", "no address", "header"]),
        (ROOM, ["from lobby"]),
        ("logs", ["to logs", "from logs"]),
        (OTHER_LOBBY, []),
    ],
)
async def test_of_one_room_only_stanzas_from_it_and_to_it_are_shown(
    room: str | None, shown: list[str]
) -> None:
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    stanzas: list[tuple[Direction, dict[str, str]]] = [
        ("in", {"id": "from lobby", "from": f"{ROOM}/Wilma", "to": "bot@example/r"}),
        ("out", {"id": "to logs", "to": LOGS.lower()}),
        ("in", {"id": "from logs", "from": f"{LOGS.upper()}/{ROOM}", "to": "bot@example/r"}),
        ("in", {"id": "from account", "from": "lobby@example", "to": "\ud800@"}),
        ("out", {"id": "no address"}),
    ]
    for direction, attributes in stanzas:
        append(played.trace, direction, "1", Element("{jabber:client}message", attributes), 0.0)
    append(played.trace, "in", "1", f"<stream id='header' from='{ROOM}'>", 0.0)
    page = await page_of(played, xmpp_trace, room=room)
    assert [
        next(each for each in [*shown, "?"] if each in entry["xml"]) for entry in page["entries"]
    ] == shown


async def test_the_stanza_behind_an_entry_is_shown_alone() -> None:
    played = Played()
    for nickname in ("Wilma", "Fred"):
        stanza = _message(f"hello from {nickname}")
        stanza.set("from", f"{ROOM}/{nickname}")
        append(played.trace, "in", "1", stanza, 0.0)
        played.hear(f"hello from {nickname}", nickname=nickname)
    page = await page_of(played, xmpp_trace, of="epoch-2")
    (entry,) = page["entries"]
    assert "hello from Wilma" in entry["xml"]
    assert page.keys().isdisjoint({"note", "gap"})
    assert (await page_of(played, xmpp_trace, of="epoch-2", direction="out"))["entries"] == []


async def test_an_entry_without_a_stanza_is_said_to_have_none() -> None:
    played = Played()
    played.publish(ConnectionChanged(Phase.WAITING))
    played.publish(Gap("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"))
    played.hear("hello")
    cursors = ("epoch-1", "epoch-2", "epoch-3", "archive:a%201")
    notes = [(await page_of(played, xmpp_trace, of=cursor))["note"] for cursor in cursors]
    assert notes == [NO_STANZA] * 2 + [LOST_STANZA] * 2


@pytest.mark.parametrize("cursor", ["yesterday", "epoch-99", "former-1", "epoch-1"])
async def test_what_is_no_entry_has_nothing_behind_it(cursor: str) -> None:
    played = Played(journal=Journal("epoch", 1))
    append(played.trace, "in", "1", _message("a stanza"), 0.0)
    played.hear("evicted", "kept")
    with pytest.raises(ArgumentError, match="of is not the cursor of an entry") as refusal:
        await page_of(played, xmpp_trace, of=cursor)
    assert refusal.value.condition == "item-not-found"
