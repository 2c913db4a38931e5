"""The page of a log: its streams, their stanzas as events, and what was found on them."""

import json
from base64 import b64encode

import pytest

from bridge.capture.capture import Capture
from bridge.capture.reader import LogReader
from bridge.page.captured import NAMELESS, CapturedPage
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import Part, Timeline, encode
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    JOIN,
    LOGIN,
    ROOM,
    USER,
    bounce,
    refusal,
    said,
    says,
    timed,
)
from tests.capture.test_secrets import spoken

SECRET = "hunter2-hunter2-hunter2"
CODED = b64encode(f"\0bot\0{SECRET}".encode()).decode()
SEAT = "<item affiliation='none' role='moderator' jid='ann@example.org/phone'/>"


def here(nickname: str, room: str = ROOM) -> str:
    return (
        f"<<< <presence from='{room}/{nickname}' to='{ACCOUNT}'><x xmlns='{USER}'>{SEAT}</x>"
        "</presence>"
    )


TALK = [*LOGIN, ASK, here("Ann"), JOIN[1], said("Ann", "!ping"), says("pong"), bounce("forbidden")]


def drawn(*lines: str, account: str = "", file: str = "bot.log") -> Timeline:
    page = CapturedPage(
        Chronicle(Pseudonyms(on=False)),
        lambda stream: stream.client.account.startswith(account) or not stream.client.account,
    )
    capture, reader = Capture(observe=page.take), LogReader(file)
    for line in lines:
        for captured in reader.feed(line.encode() + b"\n"):
            capture.take(captured)
    for captured in reader.end():
        capture.take(captured)
    capture.finish()
    return page.timeline(capture.streams, 1.0)


def only(timeline: Timeline) -> Part:
    (part,) = timeline.parts
    return part


def test_a_stream_has_its_stanzas_as_events_and_the_room_as_lanes() -> None:
    part = only(drawn(*timed(*TALK)))
    assert (part.kind, part.title) == ("stream", "bot@example.org")
    assert [(lane.name, lane.self_, lane.spans[0].before) for lane in part.lanes] == [
        ("bot", True, False),
        ("Ann", False, True),
    ]
    last = part.events[-6:]
    assert [(event.kind, event.text, event.lane) for event in last] == [
        ("connection", "joining", None),
        ("join", "* <Ann> is here (moderator, none)", 1),
        ("join", "* <bot> is here (participant, none)", 0),
        ("message", "<Ann> !ping", 1),
        ("message", "sending, id m1: pong", 0),
        ("error", "returned, id m1: forbidden", None),
    ]
    assert [event.where for event in last] == [f"bot.log:{line}" for line in range(13, 19)]
    assert last[4].stanzas == (says("pong").removeprefix(">>> ").replace("'", '"'),)
    assert part.events[4].text == "challenge"


def test_the_stages_are_bars_and_the_refused_one_says_why() -> None:
    part = only(drawn(*timed(*LOGIN, ASK, refusal("registration-required"))))
    assert [(bar.name, bar.ok, bar.detail) for bar in part.stages] == [
        ("connecting", True, ""),
        ("authenticating", True, ""),
        ("binding", True, ""),
        ("joining", False, "registration-required"),
    ]
    assert part.events[-1].text.endswith(": registration-required")


def test_a_clock_that_goes_back_leaves_no_event_outside_its_part() -> None:
    late, early = (f"2026-01-0{day}T12:00:00Z <<< <message from='a@b'/>" for day in (2, 1))
    part = only(drawn(late, early))
    assert [event.at for event in part.events] == [part.to, part.from_]


def test_a_finding_is_at_its_event_and_makes_it_as_bad() -> None:
    timeline = drawn(*timed(*TALK))
    part = only(timeline)
    (finding,) = part.findings
    event = part.events[-1]
    assert (finding.event, finding.at, finding.where) == (event.id, event.at, "bot.log:18")
    assert finding.severity == "error"
    assert timeline.verdict == part.verdict
    assert part.verdict.startswith("bot.log:18: ")


def test_an_event_is_as_bad_as_what_was_found_at_it() -> None:
    part = only(drawn(*timed(*LOGIN, says("never joined"))))
    assert [finding.event for finding in part.findings] == [part.events[-1].id]
    assert [event.severity for event in part.events[-2:]] == ["", "error"]


@pytest.mark.parametrize(
    ("stamp", "zone", "time", "at"),
    [
        ("2026-01-31 12:00:00.250", "unknown", "2026-01-31 12:00:00.250", 1_769_860_800_250),
        ("2026-01-31T12:00:00.250+01:00", "utc", "", 1_769_857_200_250),
        ("2026-01-31T12:00:00Z", "utc", "", 1_769_860_800_000),
        ("1769860800.250", "utc", "", 1_769_860_800_250),
        ("", "none", "", 3),
    ],
)
def test_times_without_a_zone_are_shown_as_they_are(
    stamp: str, zone: str, time: str, at: int
) -> None:
    timeline = drawn("starting", "ready", *(f"{stamp} {line}" for line in LOGIN))
    event = only(timeline).events[0]
    assert (timeline.zone, event.time, event.at) == (zone, time, at)


def test_the_first_stanza_tells_whether_the_log_has_times() -> None:
    timeline = drawn(*TALK, *timed(says("late")))
    part = only(timeline)
    assert timeline.zone == "none"
    assert [event.at for event in part.events] == [*range(1, len(TALK) + 2)]
    assert [event.time for event in part.events][-2:] == ["", "12:00:00.100"]
    assert [bar.name for bar in part.stages][-2:] == ["binding", "joining"]
    first, second = only(drawn(*timed(says("soon")), says("later"))).events
    assert first.at == second.at


def test_no_secret_is_on_the_page() -> None:
    field = f"<field var='muc#roomconfig_roomsecret'><value>{SECRET}</value></field>"
    lines = [f"{'>>>' if each.sent else '<<<'} {each.xml}" for each in spoken(SECRET)]
    more = [
        f">>> <iq type='set'><x xmlns='jabber:x:data'>{field}</x></iq>",
        f">>> <resume xmlns='urn:xmpp:sm:3' previd='{SECRET}'/>",
    ]
    timeline = drawn(*lines, *more)
    text = json.dumps(encode(timeline))
    assert len(timeline.parts[0].events) > len(lines) - 10
    assert not [part for part in (SECRET, CODED[:16], CODED[16:]) if part in text]


def test_what_cannot_be_read_is_a_gap() -> None:
    part = only(drawn(*timed(*LOGIN, ">>> <message><body>\x0b</body></message>")))
    assert part.gaps[0].from_ == part.events[-1].at
    assert "U+000B" in part.gaps[0].text


def test_each_stream_is_a_part_and_only_the_wanted_ones_are_kept() -> None:
    other = [line.replace("bot@", "cat@") for line in LOGIN]
    log = [*timed(*TALK), *timed(*other)]
    assert [part.title for part in drawn(*log).parts] == ["bot@example.org", "cat@example.org"]
    first, second = drawn(*log, account="cat@").parts
    # Of the other stream there is only what came before its account was known.
    assert (len(first.events), len(second.events)) == (len(LOGIN) - 1, len(LOGIN))
    assert [event.id for event in second.events][:1] == [f"e{len(LOGIN)}"]
    assert only(drawn("<<< <presence from='a@b'/>")).title == NAMELESS


def test_several_rooms_of_a_stream_have_lanes_of_their_own() -> None:
    other = "tea@muc.example.org"
    second = [line.replace(ROOM, other) for line in (ASK, JOIN[1])]
    part = only(drawn(*timed(*TALK, *second, here("Ann", other))))
    assert [lane.name for lane in part.lanes] == [
        *(f"bot in {ROOM}", f"Ann in {ROOM}"),
        *(f"bot in {other}", f"Ann in {other}"),
    ]
    assert part.events[-1].lane == 3
