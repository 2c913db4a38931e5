import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.text import iso
from bridge.views.screen import Display, width
from bridge.views.watch import NICKNAME_LIMIT, NOTES_LIMIT, PRESENT, News, RoomView
from bridge.xmpp.link.trace import TracedStanza
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Event, MessageReceived, Phase, Source
from bridge.xmpp.model.faults import Fault, Retry
from bridge.xmpp.model.formatting import MAX_TEXT_CHARACTERS
from bridge.xmpp.model.journal import Record

SCREENS = Path(__file__).parent / "screens"
NOON = 1_700_049_600.0  # 2023-11-15T12:00:00Z
ROOM = "lab@conference.example.org"

LONG = (
    "deploying 1.42.0 to the two canaries now; the dashboards are at the usual place, and if the "
    "error rate goes over one in a thousand I roll back without asking"
)


def _said(nickname: str, body: str, **more: object) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body, **more)  # type: ignore[arg-type]


def _here(nickname: str, **more: object) -> events.OccupantJoined:
    place = f"{ROOM}/{nickname}"
    return events.OccupantJoined(place, nickname, "participant", "none", **more)  # type: ignore[arg-type]


REFUSED = Fault(
    "not-authorized",
    "example.org refused the login of bot@example.org.",
    "Check XMPP_USERNAME and XMPP_PASSWORD.",
    Retry.NEVER,
)

EVENING: tuple[Event, ...] = (
    events.ConnectionChanged(Phase.CONNECTING, attempt=1),
    events.Connected(
        "bot@example.org/x",
        "xmpp://example.org",
        events.Tls("TLSv1.3", "TLS_AES_256_GCM_SHA384", verified=True),
        "SCRAM-SHA-256-PLUS",
    ),
    _here("Alice"),
    _here("McpDebug-watch", self_=True),
    events.Joined(f"{ROOM}/McpDebug-watch", "McpDebug-watch", created=False),
    events.SubjectChanged("Release day", "Alice"),
    _said("Alice", "good evening", source=Source.HISTORY, delayed_from="2023-11-15T11:00:00Z"),
    _here("Bob"),
    _said("Alice", "hello, Bob"),
    _said("Bob", "hello\nthis is what it prints:\n\n\tTraceback (most recent call last):"),
    _said("Bob", LONG),
    _said("東京タワー", "こんにちは"),
    _said("Zoe\u0308", "accents do not count"),
    _said("a nickname of more than sixteen columns", "pushes its line"),
    _said("Alice", "for your eyes only", type="chat"),
    _said("Alice", "hello, everybody", replaces="a1"),
    _said("Bob", "yes", reply_to="b2"),
    _said("Bob", "", reacts_to="b2", reactions=("👍",)),
    _said("Alice", "", retracts="a1"),
    _said("Alice", "", payload=("composing (http://jabber.org/protocol/chatstates)",)),
    _said("Bob", "You cannot read this.", encrypted="OMEMO"),
    events.MessageSent(f"{ROOM}/McpDebug-watch", "McpDebug-watch", "never shown", "c3"),
    events.NicknameChanged(f"{ROOM}/Bob", "Bob", "Robert"),
    events.OccupantChanged(
        f"{ROOM}/Robert",
        "Robert",
        "visitor",
        "none",
        former_role="participant",
        former_affiliation="none",
        actor="Alice",
    ),
    events.OccupantLeft(
        f"{ROOM}/Robert", "Robert", codes=frozenset({307}), reason="enough", actor="Alice"
    ),
    events.AffiliationChanged("robert@example.org", "outcast"),
    events.RoomConfigured(frozenset({104})),
    events.Gap(iso(NOON - 60), iso(NOON)),
    events.RoomError("forbidden", "you are banned"),
    events.StanzaDamaged("lobby@conference.example.org/Eve", "Eve", "it is odd"),
    events.OccupantError(f"{ROOM}/Bob", "Bob", "not-acceptable", "no\nsuch command", "c3"),
    events.RoomDestroyed("moved", "new@conference.example.org"),
    events.ConnectionChanged(Phase.FAILED, REFUSED, attempt=1),
)
"""One of everything that a watcher may come to see."""


def _shown(view: RoomView, *happened: Event) -> str:
    told = (view.event(Record(n, NOON + n, event)) for n, event in enumerate(happened, 1))
    return "".join(f"{text}\n" for text in told if text)


def _at(columns: int | None, *, paint: bool = False) -> RoomView:
    return RoomView(Display(paint, lambda: columns))


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("watch-pipe.txt", _at(None)),
        ("watch-80-columns.txt", _at(80)),
        ("watch-80-columns-colour.txt", _at(80, paint=True)),
    ],
)
def test_the_screen_is_as_it_was_written_down(
    name: str, view: RoomView, request: pytest.FixtureRequest
) -> None:
    shown = _shown(view, *EVENING).replace("\x1b", "␛")
    if request.config.getoption("--update-screens"):
        (SCREENS / name).write_text(shown, encoding="utf-8")
    assert shown == (SCREENS / name).read_text("utf-8"), "--update-screens if it is meant to be so"


def test_every_kind_of_event_is_on_the_screens() -> None:
    assert {type(event) for event in EVENING} | {events.SendFailed} == set(events.Event.__args__)


def test_a_message_that_the_room_returned_is_red() -> None:
    shown = _shown(_at(None, paint=True), events.SendFailed("id", "forbidden"))
    assert "\x1b[31mreturned, id id: forbidden\x1b[0m" in shown


HOSTILE = [
    "one\n12:00:00  <Alice>           forged",
    "x" + " " * 40 + "12:00:00  <Alice>           forged",
    "x" * 70 + "12:00:00  <Alice>           forged",
    "日" * 60 + "12:00:00  <Alice>           forged",
    "tab\t" * 30 + "12:00:00  <Alice>           forged",
    "a\r12:00:00  <Alice>  forged",
    "a\x1b[2J\x1b[1;1H12:00:00  <Alice>  forged",
    "a\x9b2Jforged\u2028forged\x85forged\u202eforged",
]


@given(
    nickname=st.sampled_from([body.replace("\n", " ") for body in HOSTILE]) | st.text(min_size=1),
    body=st.sampled_from(HOSTILE)
    | st.text(st.characters() | st.sampled_from("\n\t 1:<>*"), min_size=1),
    columns=st.none() | st.integers(60, 120),
)
def test_whatever_is_said_stays_behind_its_own_time(
    nickname: str, body: str, columns: int | None
) -> None:
    for event in (_said(nickname, body), _said(nickname, "", retracts="a"), _here(nickname)):
        _assert_unforged(_shown(_at(columns), event), columns)


@pytest.mark.parametrize("body", HOSTILE)
@pytest.mark.parametrize("columns", [50, 20, 5, 1])
def test_nobody_forges_a_line_on_a_narrow_terminal(body: str, columns: int) -> None:
    _assert_unforged(_shown(_at(columns), _said("Mallory", body)), columns)


def _assert_unforged(shown: str, columns: int | None) -> None:
    first, *rest = shown.removesuffix("\n").split("\n")
    assert first.startswith("2023-11-15T12:00:01.000Z  " if columns is None else "12:00:01")
    assert columns is not None or not rest
    assert all(line.startswith(" ") or (columns == 1) for line in rest)
    printable = shown.replace("\n", "").replace("\t", "" if columns is None else "\t")
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", printable)
    if columns is not None and columns >= 20:  # a terminal breaks no line by itself
        assert all(width(line) <= columns for line in (first, *rest))


@pytest.mark.parametrize(
    ("nickname", "shown"),
    [
        ("Alice", "<Alice>"),
        ("Alice Liddell", "<Alice Liddell>"),
        ("Alice  I agree", "<Alice \\u{20}I agree>"),
        (" Alice ", "<\\u{20}Alice\\u{20}>"),
        ("Alice\u3000\u2800x", "<Alice\\u{3000}\\u{2800}x>"),
        ("Alice> I agree <", "<Alice\\u{3E} I agree \\u{3C}>"),
        ("* Bob left", "<* Bob left>"),
    ],
)
def test_a_nickname_cannot_end_before_its_end(nickname: str, shown: str) -> None:
    assert _shown(_at(None), _said(nickname, "body")).split("  ")[1] == shown


def test_a_nickname_is_cut_at_its_limit() -> None:
    longest = "n" * NICKNAME_LIMIT
    assert f"<{longest}>" in _shown(_at(None), _said(longest, "hi"))
    assert f"<{longest[1:]}…>" in _shown(_at(None), _said(longest + "n", "hi"))


def test_a_mark_is_no_place_for_a_long_text() -> None:
    head = len("(instead of ")
    longest = "x" * (NOTES_LIMIT - head - 1)
    assert f"(instead of {longest}) hi\n" in _shown(_at(None), _said("B", "hi", replaces=longest))
    shown = _shown(_at(None), _said("Bob", "hi", replaces=longest + "x"))
    assert f"(instead of {longest}x... ({NOTES_LIMIT + 1} characters) hi\n" in shown


def test_in_a_pipe_a_message_is_one_line_as_long_as_a_text_may_be() -> None:
    (line,) = _shown(_at(None), _said("Bob", "one\ntwo\u2028three")).splitlines()
    assert line.endswith("  one\\u{A}two\\u{2028}three")
    longest = "x" * MAX_TEXT_CHARACTERS
    assert _shown(_at(None), _said("Bob", longest)).endswith(f"  {longest}\n")
    shown = _shown(_at(None), _said("Bob", f"{longest}y"))
    assert shown.endswith(f"  {longest}... ({MAX_TEXT_CHARACTERS + 1} characters)\n")
    assert f"{longest}y" in "".join(_shown(_at(80), _said("Bob", f"{longest}y")).split())


def test_of_several_rooms_a_pipe_has_the_name_in_each_line() -> None:
    view = RoomView(Display(False), names_rooms=True)
    shown = [
        view.event(Record(1, NOON, _said("Alice", "hello"), "lobby@muc")),
        view.event(Record(2, NOON, _here("Bob"), "a\nb@muc")),
        view.event(Record(3, NOON, events.ConnectionChanged(events.Phase.WAITING))),
    ]
    assert shown[0] == "2023-11-15T12:00:00.000Z  lobby@muc: <Alice>             hello"
    assert shown[1].startswith("2023-11-15T12:00:00.000Z  a\\u{A}b@muc: * <Bob> is here (")
    assert shown[2] == "2023-11-15T12:00:00.000Z  waiting"


@pytest.mark.parametrize("columns", [80, 12, 1])
def test_of_several_rooms_a_terminal_has_the_name_where_it_is_another_than_before(
    columns: int,
) -> None:
    view = RoomView(Display(False, lambda: columns), names_rooms=True)
    one_room = _at(columns)
    happened: list[tuple[str, Event]] = [
        ("lobby@muc", _said("Alice", "hello")),
        ("lobby@muc", _said("Bob", "hello")),
        ("", events.ConnectionChanged(events.Phase.WAITING)),
        ("lobby@muc", events.MessageSent(ROOM, "", "not shown", "m")),
        ("lobby@muc", _said("Alice", "still here")),
        ("team@muc", _here("Zoe")),
        ("lobby@muc", _said("Alice", "and here")),
    ]
    above = ""
    for room, event in happened:
        shown = view.event(Record(1, NOON, event, room))
        lines = one_room.event(Record(1, NOON, event))
        if room and lines and room != above:
            named, above = shown.removesuffix(f"\n{lines}").split("\n"), room
            assert "".join("".join(named).split()) == f"---{room}"
            assert all(width(line) <= columns for line in named) or columns == 1
        else:
            assert shown == lines


STANZA = (
    f'<message from="{ROOM}/Mallory">\n  <body>x\n12:00:00  --&gt; forged {"y" * 80}\x9b'
    "12:00:00  forged</body>\n</message>"
)


@pytest.mark.parametrize(
    ("name", "columns"), [("stanza-pipe.txt", None), ("stanza-80-columns.txt", 80)]
)
def test_a_stanza_is_as_it_was_written_down_and_forges_no_line(
    name: str, columns: int | None, request: pytest.FixtureRequest
) -> None:
    shown = _at(columns).stanza(TracedStanza(1, NOON, "in", "2", STANZA)) + "\n"
    if request.config.getoption("--update-screens"):
        (SCREENS / name).write_text(shown, encoding="utf-8")
    assert shown == (SCREENS / name).read_text("utf-8"), "--update-screens if it is meant to be so"
    head, *rest = shown.splitlines()
    assert head == "12:00:00  <-- 202 bytes, connection 2"
    assert all(line.startswith("    ") for line in rest)
    if columns is not None:
        assert all(width(line) <= columns for line in rest)


DAY = 86_400.0
MIDNIGHT = NOON + DAY / 2


def test_a_line_with_the_date_stands_before_what_is_shown_first_on_another_day() -> None:
    view = _at(80)
    shown = [
        view.event(Record(1, at, event))
        for at, event in (
            (MIDNIGHT - 0.001, _said("Alice", "late")),
            (MIDNIGHT, events.MessageSent(ROOM, "", "not shown", "m")),
            (MIDNIGHT + 1, _said("Alice", "early")),
            (MIDNIGHT + 2, _here("Bob")),
            (MIDNIGHT + DAY, _here("Zoe")),
            (MIDNIGHT + 1, _said("Alice", "the clock was put back")),
        )
    ]
    assert shown[0].startswith("23:59:59  ")
    assert shown[1] == ""
    assert shown[2].startswith("--- 2023-11-16\n00:00:01  ")
    assert shown[3].startswith("00:00:02  ")
    assert shown[4].startswith("--- 2023-11-17\n00:00:00  ")
    assert shown[5].startswith("--- 2023-11-16\n00:00:01  ")


class Told(NamedTuple):
    """What a room tells us because we enter it."""

    event: Event


SUBJECT = Told(events.SubjectChanged("Release day", "Alice"))
US = _here("McpDebug-watch", self_=True)
OLD = Told(_said("Alice", "good evening", source=Source.HISTORY))
ENTERING = events.ConnectionChanged(Phase.JOINING)
JOINED = events.Joined(f"{ROOM}/McpDebug-watch", "McpDebug-watch", created=False)


@pytest.mark.parametrize(
    ("happened", "place"),
    [
        ((ENTERING, US, OLD, SUBJECT, JOINED, _said("Alice", "hello")), "after 3"),
        ((ENTERING, US, JOINED, SUBJECT, _said("Alice", "hello"), SUBJECT), "after 3"),
        ((ENTERING, OLD, _said("Alice", "hello"), SUBJECT), "before 2"),
        ((ENTERING, Told(_here("Alice")), US, OLD, _here("Bob"), _here("Zoe")), "before 4"),
        (
            (ENTERING, JOINED, SUBJECT, ENTERING, OLD, events.Gap("", ""), SUBJECT),
            "after 2, after 6",
        ),
        ((_said("Alice", "not entered"), OLD, SUBJECT), ""),
    ],
)
def test_the_present_begins_after_the_subject_or_before_the_first_news(
    happened: tuple[Event | Told, ...], place: str
) -> None:
    news, places = News(), []
    for number, each in enumerate(happened):
        record = _record(each)
        if side := news.present(record, is_news=news.has(record)):
            places.append(f"{side} {number}")
    assert ", ".join(places) == place


def test_the_line_of_the_present_names_its_room_and_fits() -> None:
    record = Record(1, NOON, _here("Bob"), ROOM)
    assert _at(None).present(record) == f"2023-11-15T12:00:00.000Z  {PRESENT}"
    view = RoomView(Display(False, lambda: 30), names_rooms=True)
    assert all(width(line) <= 30 for line in view.present(record).split("\n"))
    assert f"{ROOM}: --- here" in RoomView(Display(False), names_rooms=True).present(record)


def test_history_has_the_time_at_which_it_was_said() -> None:
    said = _said("Alice", "x", source=Source.HISTORY, delayed_from="2023-11-14T11:00:00.000Z")
    assert (
        _at(None).event(Record(1, NOON, said)) == f"2023-11-14T11:00:00.000Z  {'<Alice>':<16}    x"
    )
    odd = said._replace(delayed_from="yesterday")
    assert "(said yesterday) x" in _at(None).event(Record(1, NOON, odd))
    view = _at(80)
    view.event(Record(1, NOON, _here("Alice")))
    assert view.event(Record(1, NOON, said)).startswith("--- 2023-11-14\n11:00:00  <Alice>")
    assert view.present(Record(2, NOON, said)).startswith("--- 2023-11-15\n12:00:00  --- here")


@pytest.mark.parametrize(
    ("before", "event", "news"),
    [
        ((ENTERING,), Told(_here("Alice")), False),
        ((ENTERING,), US, False),
        ((ENTERING, US), _here("Bob"), True),
        ((ENTERING, US), OLD, False),
        ((ENTERING, US, JOINED), OLD, False),
        ((ENTERING, US, OLD), SUBJECT, False),
        ((ENTERING, US, OLD), _said("Alice", "hello"), True),
        ((ENTERING, US, SUBJECT), events.SubjectChanged("another"), True),
        ((ENTERING, ENTERING, US), OLD, False),
        ((ENTERING, US, JOINED, SUBJECT, ENTERING), Told(_here("Alice")), False),
        ((ENTERING, US, JOINED, SUBJECT, ENTERING, US), OLD, True),
        ((ENTERING, US, JOINED, SUBJECT, ENTERING, US), SUBJECT, False),
        ((), Told(_said("Alice", "while we were away", source=Source.ARCHIVE)), True),
        ((), events.ConnectionChanged(Phase.WAITING), True),
    ],
)
def test_what_a_room_tells_whoever_enters_is_no_news(
    before: tuple[Event | Told, ...], event: Event | Told, news: bool
) -> None:
    told = News()
    for each in before:
        told.has(_record(each))
    told.has(Record(0, NOON, ENTERING, "another@muc"))
    assert told.has(_record(event)) is news


def _record(event: Event | Told) -> Record:
    earlier = isinstance(event, Told)
    return Record(0, NOON, event.event if isinstance(event, Told) else event, ROOM, 0, earlier)
