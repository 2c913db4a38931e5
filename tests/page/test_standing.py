"""The verdict on what was recorded in rooms, and what the page folds of it."""

from itertools import count
from typing import Any

import pytest

from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import RecordedPage
from bridge.page.timeline import Timeline
from bridge.store.database import Observer, Recorded
from bridge.text import iso
from bridge.xmpp.model.filter import EventFilter
from tests.store.shelf import ROOM

RECORDER = Observer("bot@example", "McpDebug-record", "night")
VISITOR = Observer("bot@example", "McpDebug-diagnose", "visit")
HELD = {"role": "participant", "affiliation": "none"}


def here(name: str, room: str = ROOM, **more: Any) -> dict[str, Any]:
    return {"kind": "join", **by(name, room), **HELD, **more}


def by(name: str, room: str = ROOM) -> dict[str, Any]:
    return {"direction": "in", "from": f"{room}/{name}", "sender": name}


def said(name: str, body: str, room: str = ROOM, **more: Any) -> dict[str, Any]:
    message = {"kind": "message", "body": body, "type": "groupchat", "source": "live"}
    return {**message, **by(name, room), **more}


def phase(name: str) -> dict[str, Any]:
    return {"kind": "connection", "phase": name}


ENTRY = [phase("joining"), here("Ann"), here("Bot"), here("McpDebug-record"), phase("joined")]
ASKED = [said("Ann", "!ping"), said("Bot", "pong")]
KICK = {"kind": "leave", **by("Bot"), "codes": [307], "actor": "Ann", "reason": "flooding"}
MUTED = {"kind": "role", **by("Bot"), "role": "visitor", "affiliation": "none", "actor": "Ann"}
MUTED |= {"formerRole": "participant"}
WAIT = [said("Ann", "well")] * 60
AWAY = {"kind": "gap", "from": iso(1.0), "to": iso(9.0), "reason": "nobody recorded this room"}
FAILED = {
    "condition": "not-authorized",
    "text": "The server refused the password.",
    "hint": "Set XMPP_PASSWORD.",
}


def drawn(*events: dict[str, Any], room: str = ROOM, pseudonyms: bool = False) -> Timeline:
    page = RecordedPage(Chronicle(Pseudonyms(on=pseudonyms)), [])
    add(page, *events, room=room)
    return page.timeline(99.0)


def add(page: RecordedPage, *events: dict[str, Any], room: str = ROOM) -> None:
    """Take events, one each half a second; those of a connection belong to the recorder."""
    for at, event in zip(count(step=0.5), events, strict=False):
        shared = event["kind"] != "connection"
        page.take(Recorded(1, at, room, event, RECORDER, shared))


CASES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "nothing": ([*ASKED, *WAIT], ("Nothing stands out.",)),
    "a gap is the recorder's own": ([AWAY, *ASKED, *WAIT], ("Nothing stands out.",)),
    "kicked": (
        [*ASKED, KICK, said("Ann", "!ping"), said("Ann", "!help"), *WAIT],
        ('"Bot" left the room at ', "kicked", '"Ann"', "2 messages since then got no answer."),
    ),
    "gone by itself": ([*ASKED, {"kind": "leave", **by("Bot")}, *WAIT], ('"Bot" left the room',)),
    "no voice": (
        [*ASKED, MUTED, said("Ann", "!ping"), *WAIT],
        ('"Bot" has no voice', "1 message since then", "A moderator can give it voice"),
    ),
    "silent": ([*ASKED, said("Ann", "!ping"), *WAIT], ('"Bot" is there and left', "1 message")),
    "no program": ([said("Ann", "!help"), *WAIT], ('"!help" of "Ann" got no answer.',)),
    "too soon to say": ([*ASKED, said("Ann", "!ping")], ("Nothing stands out.",)),
    "gone meanwhile": (
        [*ASKED, phase("joining"), here("Ann"), here("McpDebug-record"), phase("joined"), *WAIT],
        ('"Bot" was there, and was gone when the bridge came back at 1970-01-01T00:00:03.500Z.',),
    ),
    "our message came back": (
        [{"kind": "error", "direction": "in", "id": "7", "condition": "forbidden", "text": "no"}],
        (f'The room {ROOM} refused the message ("no"): the bridge has no voice in it. In a mod',),
    ),
    "not let in": (
        [phase("failed") | FAILED],
        ("refused the password. [not-authorized] Set XMPP",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_names_what_stands_out_and_what_to_do(case: str) -> None:
    events, words = CASES[case]
    timeline = drawn(*ENTRY, *events)
    for text in words:
        assert text in timeline.verdict


def test_the_finding_is_at_the_event_that_the_verdict_is_about() -> None:
    (part,) = drawn(*ENTRY, *ASKED, KICK, said("Ann", "!ping"), *WAIT).parts
    (finding,) = part.findings
    (event,) = [event for event in part.events if event.id == finding.event]
    assert (finding.name, finding.severity, event.kind) == ("present", "error", "leave")
    assert finding.hint


def test_with_several_rooms_the_verdict_names_the_one_and_counts_the_others() -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    tea = "tea@conference.example"
    add(page, *ENTRY, *ASKED, *WAIT)
    there = [here("Ann", tea), here("Bot", tea)]
    there += [said("Ann", "!ping", tea), said("Bot", "pong", tea)]
    left = {**KICK, **by("Bot", tea)}
    add(page, *there, left, *([said("Ann", "!ping", tea)] * 2), *WAIT, room=tea)
    verdict = page.timeline(99.0).verdict
    assert verdict.startswith(f'{tea}: "Bot" left the room')


def test_with_pseudonyms_the_verdict_has_no_name() -> None:
    verdict = drawn(*ENTRY, *ASKED, KICK, *WAIT, pseudonyms=True).verdict
    assert '"Nick' in verdict
    assert not {"Ann", "Bot", "flooding"} & {*verdict.replace('"', " ").split()}


def test_what_the_bridge_did_itself_is_folded_and_what_it_said_is_not() -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    old = said("Ann", "before", source="history", delayedFrom=iso(-5.0))
    missed = said("Ann", "meanwhile", source="history", delayedFrom=iso(0.5))
    check, send = "McpDebug-check-0a1b2c3d", "McpDebug-send"
    subject = {"kind": "subject", **by("Ann"), "subject": "tea"}
    add(page, *ENTRY[:2], old, missed, subject, *ENTRY[2:])
    for at, event in enumerate(
        [
            *(here("McpDebug-diagnose"), here(check), here(send), said(send, "!ping")),
            *(said("Bot", "pong"), {"kind": "leave", **by(check)}, here("Eve"), subject),
        ],
        10,
    ):
        page.take(Recorded(1, at, ROOM, event, RECORDER, shared=True))
    page.take(Recorded(1, 30.0, ROOM, phase("joined"), VISITOR, shared=False))
    (part,) = page.timeline(99.0).parts
    folds = [(event.folded, event.text.partition(" (")[0]) for event in part.events]
    assert [text for folded, text in folds if not folded] == [
        "<Ann>",
        f"<{send}> !ping",
        "<Bot> pong",
        "* <Eve> is here",
        "* subject by <Ann>: tea",
    ]
    assert {folded for folded, _ in folds} == {"", "bridge", "history", "connecting"}
    assert {lane.name for lane in part.lanes if lane.folded} == {check, "McpDebug-diagnose"}


def test_a_step_of_connecting_that_failed_is_not_folded() -> None:
    steps = [phase("resolving"), phase("connecting"), phase("waiting") | FAILED, phase("joining")]
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [])
    add(page, *steps, room="")
    (part,) = page.timeline(9.0).parts
    assert [event.folded for event in part.events] == ["connecting", "", "", "connecting"]


@pytest.mark.parametrize("only", [EventFilter(frozenset({"message"})), EventFilter(sender="Ann")])
def test_what_filters_leave_out_counts_for_answers_and_for_the_verdict(only: EventFilter) -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [only])
    add(page, *ENTRY, *ASKED, *WAIT)
    timeline = page.timeline(99.0)
    (part,) = timeline.parts
    assert [event.answer_ms for event in part.events if "!ping" in event.text] == [500]
    assert timeline.verdict == "Nothing stands out."
    page = RecordedPage(Chronicle(Pseudonyms(on=False)), [only])
    add(page, *ENTRY, *ASKED, KICK, *WAIT)
    assert page.timeline(99.0).verdict.startswith('"Bot" left the room')


def test_who_came_before_the_newest_events_is_still_there() -> None:
    page = RecordedPage(Chronicle(Pseudonyms(on=False), 100), [])
    add(page, *ENTRY, *WAIT, *ASKED, *WAIT)
    timeline = page.timeline(99.0)
    assert timeline.left_out
    assert timeline.verdict == "Nothing stands out."
