"""How a stream ended: what the client had sent, what that answered, and a header without answer."""

import pytest

from bridge.capture.capture import Capture
from bridge.capture.finding import Severity
from tests.capture.logs import (
    HEADER,
    IN,
    LOGIN,
    ROOM,
    SASL,
    captured,
    found,
    said,
    says,
    stream_error,
    timed,
)
from tests.capture.test_failures import PYTHON

OPEN, CLOSE = f">>> {HEADER}", ">>> </stream:stream>"
ASKED = said("Ann", "show it")
COUNT = "<handled-count-too-high xmlns='urn:xmpp:sm:3' h='10' send-count='8'/>"

ENDED = {
    "too big": (
        [*IN, ASKED, says("x" * 300_000), stream_error("policy-violation")],
        "300000 bytes",
    ),
    "too big, what it answers": (
        [*IN, ASKED, says("x" * 12_000), stream_error("resource-constraint")],
        '"show it"',
    ),
    "too big, and not in English": (
        [*IN, says("ä" * 6_000), stream_error("policy-violation")],
        "12000 bytes",
    ),
    "a forbidden character, what it answers": (
        [*IN, ASKED, says("a\x0bb"), stream_error("not-well-formed")],
        '"show it"',
    ),
    "bad XML, what stands around it": (
        [*IN, says("first line\nfish & chips, sir"), stream_error("not-well-formed")],
        'in "first line\\nfish & chips, sir"',
    ),
    "a forbidden character, what stands around it": (
        [*IN, says("price: a\x0bb, sir"), stream_error("not-well-formed")],
        "price: a",
    ),
    "a number too high": (
        [*IN, stream_error("undefined-condition").replace("</stream:e", f"{COUNT}</stream:e")],
        'acknowledged "10", and the server had sent "8"',
    ),
    "a header that is never answered": (timed(OPEN, "pause 44", CLOSE), "stream header in 44 s"),
    "a header that is never answered, without times": ([OPEN, CLOSE], "stream header"),
    "header after header": ([OPEN, OPEN, OPEN, CLOSE], "stream header"),
    "a header without an offer": ([OPEN, f"<<< {HEADER}", CLOSE], "stream header"),
    "an address that is not its own": ([*IN, says("a"), stream_error("invalid-from")], "`from`"),
}


@pytest.mark.parametrize("case", ENDED)
def test_what_ended_the_stream_is_told(case: str) -> None:
    log, words = ENDED[case]
    assert any(words in each.message for each in found(*log) if each.name == "ended")


FINE = {
    "a header that was answered": [OPEN, f"<<< {HEADER}", LOGIN[2].replace("SCRAM", "X"), CLOSE],
    "a client that closes at once": timed(OPEN, "pause 2", CLOSE),
    "only what was sent": [OPEN, LOGIN[3], OPEN, LOGIN[10], says("a"), CLOSE],
}


@pytest.mark.parametrize("case", FINE)
def test_a_header_that_was_answered_is_not_named(case: str) -> None:
    assert not [each for each in found(*FINE[case]) if each.name == "ended"]


TRACE = PYTHON.split("\n")


@pytest.mark.parametrize(
    ("lines", "is_named"),
    [(TRACE, True), ([said("Ann", "hi"), *TRACE], True), ([*TRACE, said("Ann", "hi")], False)],
)
def test_a_program_that_failed_just_before_its_stream_broke_is_named(
    lines: list[str], is_named: bool
) -> None:
    (ended,) = [each for each in found(*IN, *lines, *IN) if each.name == "ended"]
    assert ended.message.startswith("The connection broke")
    assert ("KeyError" in ended.message) is is_named
    assert ("mend that line" in ended.hint) is is_named


def test_each_time_that_a_program_fails_under_another_resource_is_named() -> None:
    again = [[line.replace("example.org/r", f"example.org/{name}") for line in IN] for name in "xy"]
    lines = (line for stream in (IN, *again) for line in (*stream, *TRACE))
    ended = [each for each in found(*lines) if each.name == "ended"]
    assert ["KeyError" in each.message for each in ended] == [True, True]


def test_a_small_stanza_is_not_called_too_big() -> None:
    (finding,) = found(*IN, says("x" * 900), stream_error("policy-violation"))
    assert "bytes" not in finding.message


def test_what_came_long_before_is_not_called_the_question() -> None:
    log = [*IN, ASKED, said("bot", "ok"), says("a\x0bb", f"{ROOM}/Ann", "chat")]
    (finding,) = found(*log, stream_error("not-well-formed"))
    assert "show it" not in finding.message


@pytest.mark.parametrize("space", ["urn:ietf:params:xml:ns:xmpp-streams", "jabber:client"])
def test_an_end_behind_what_the_log_has_in_part_is_not_called_one_without_an_error(
    space: str,
) -> None:
    torn = f'RECV: stream:error<system-shutdown xmlns="{space}"/>/stream:error'
    findings = found(torn, "End of stream received")
    assert not any("without an error" in each.message for each in findings)
    assert [each.name for each in found(says("a"), "End of stream received")] == ["ended"]


@pytest.mark.parametrize(
    "end", ["<<< </stream:stream>", stream_error("undefined-condition").replace("<<<", ">>>")]
)
def test_a_stream_that_ends_with_a_refused_login_is_named_by_that(end: str) -> None:
    refused = f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>"
    assert [each.name for each in found(*LOGIN[:4], refused, end)] == ["login"]


ANSWERS = {
    "a header": ([OPEN], [f"<<< {HEADER}", LOGIN[2]]),
    "a login": (LOGIN[:4], [LOGIN[4]]),
    "STARTTLS": (
        [*LOGIN[:2], ">>> <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"],
        ["<<< <proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"],
    ),
}


PING = "<<< <iq type='get' id='p' from='example.org'><ping xmlns='urn:xmpp:ping'/></iq>"
PONG = ">>> <iq type='result' id='p' to='example.org'/>"
FOOTER = "<<< </stream:stream>"


@pytest.mark.parametrize(
    ("lines", "is_named"),
    [
        ([*IN, PING, "pause 4", FOOTER], True),
        ([*IN, PING, "pause 4", *IN], True),
        ([*IN, PING, "pause 4", FOOTER] * 3, True),
        ([*IN, PING, "pause 1", FOOTER], False),
        ([*IN, PING, PONG, "pause 4", FOOTER], False),
        ([*IN, PING, PONG, "pause 4", FOOTER, *[*IN, PING, "pause 4", FOOTER] * 2], False),
    ],
)
def test_a_request_that_was_unanswered_when_the_stream_ended_is_named(
    lines: list[str], is_named: bool
) -> None:
    ended = [each for each in found(*timed(*lines)) if each.name == "ended"]
    explained = [each for each in ended if each.cause == "period"] or ended
    assert ("never answered the server's request" in explained[0].message) is is_named


def test_streams_that_each_end_with_a_message_end_at_no_period() -> None:
    lines = [*IN, "pause 9", said("Ann", "caf\u00e9")]
    ended = [each for each in found(*timed(*lines * 3, *IN)) if each.name == "ended"]
    assert [each.cause for each in ended] == ["cut"] * 3
    assert 'It had got the message "caf\u00e9" in line' in ended[0].message


def test_streams_that_end_with_a_reason_end_at_no_period() -> None:
    names = [each.cause for each in found(*timed(*[OPEN, stream_error("host-unknown")] * 3))]
    assert names == ["error"] * 3


@pytest.mark.parametrize("is_given_up", [False, True], ids=["waits", "has closed the stream"])
@pytest.mark.parametrize("asked", ANSWERS)
def test_a_server_that_answers_late_after_all_is_no_error_if_the_client_still_waits(
    asked: str, is_given_up: bool
) -> None:
    before, after = ANSWERS[asked]
    closed = [CLOSE] if is_given_up else []
    stanzas = [*captured(*timed(*before, "pause 11", *closed, *after))]
    capture = Capture()
    for number, stanza in enumerate(stanzas):
        if number == len(before):
            assert stanza.seconds is not None
            capture.pause(stanza.seconds)
            assert capture.streams[0].has_error()
        capture.take(stanza)
    told = [each for each in capture.streams[0].findings() if "never answered" in each.message]
    severities = [Severity.ERROR if is_given_up else Severity.NOTE]
    assert [each.severity for each in told] == severities
    assert ("It answered later." in told[0].message) is not is_given_up


@pytest.mark.parametrize(
    ("sessions", "is_late"), [(None, True), ({"1"}, True), ({"2"}, False), (set[str](), False)]
)
def test_a_stream_that_is_over_misses_nothing(sessions: set[str] | None, is_late: bool) -> None:
    asked = "<<< <iq from='example.org' type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>"
    capture = Capture()
    for stanza in captured(*timed(*IN, asked)):
        capture.take(stanza._replace(session="1"))
    assert stanza.seconds is not None
    capture.pause(stanza.seconds + 11, sessions)
    told = [each.name for each in capture.streams[0].findings()]
    assert ("unanswered" in told) is is_late
