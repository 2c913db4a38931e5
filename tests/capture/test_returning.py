"""Whether a client asks again for the rooms in which it was when its stream broke."""

import pytest

from bridge.capture.finding import Severity
from bridge.capture.verdict import verdict
from tests.capture.logs import (
    IN,
    JOIN,
    LOGIN,
    ROOM,
    bounce,
    examined,
    found,
    out,
    said,
    says,
    stream_error,
    timed,
)

PING = "<<< <iq type='get' id='p{}' from='example.org'><ping xmlns='urn:xmpp:ping'/></iq>"
PONG = ">>> <iq type='result' id='p{}' to='example.org'/>"
ALIVE = [line.format(number) for number in range(4) for line in (PING, PONG, "pause 6")]
LEFT = [f">>> <presence to='{ROOM}/bot' type='unavailable'/>", out()]
OTHER = [line.replace(ROOM, "lab@muc.example.org") for line in JOIN]
DOWN = stream_error("system-shutdown")
ENDS = [">>> </stream:stream>", "<<< </stream:stream>"]

GONE = {
    "it broke": [*IN, *LOGIN, *ALIVE],
    "the server ended it": [*IN, DOWN, "<<< </stream:stream>", *LOGIN, *ALIVE],
    "it asked for another of its rooms": [*IN, *OTHER, *LOGIN, *OTHER, *ALIVE],
}
BACK = {
    "it asked at once": [*IN, *LOGIN, *JOIN, *ALIVE],
    "it asked late": [*IN, *LOGIN, *ALIVE, *JOIN, *ALIVE],
    "it had left the room": [*IN, *LEFT, *LOGIN, *ALIVE],
    "it had ended the stream itself": [*IN, *ENDS, *LOGIN, *ALIVE],
    "it is there for another room": [*IN, *LOGIN, *OTHER, *ALIVE],
    "the room speaks to it": [*IN, *LOGIN, said("Ann", "hi"), *ALIVE],
}


@pytest.mark.parametrize("case", GONE)
@pytest.mark.parametrize("has_times", [True, False])
def test_a_room_for_which_it_does_not_ask_again_is_the_verdict(case: str, has_times: bool) -> None:
    lines = [line for line in GONE[case] if has_times or not line.startswith("pause")]
    findings = found(*(timed(*lines) if has_times else lines))
    (finding,) = [each for each in findings if "did not ask to join it again" in each.message]
    assert (finding.name, finding.about) == ("join", ROOM)
    assert finding.message in verdict(findings)


@pytest.mark.parametrize("case", BACK)
def test_of_a_client_that_comes_back_or_is_done_nothing_of_the_kind_is_said(case: str) -> None:
    findings = found(*timed(*BACK[case]))
    assert "join" not in {each.name for each in findings}


def test_where_the_log_ends_too_early_is_only_noted() -> None:
    findings = [it for each in examined(*timed(*IN, *LOGIN)) for it in each.findings()]
    (note,) = [each for each in findings if each.name == "join"]
    assert (note.severity, note.about) == (Severity.NOTE, ROOM)
    assert verdict(findings).startswith("bot.log:14: The connection broke")
    assert "and the log ends before it asks to join" in verdict(findings)


OFFLINE = [LEFT[0].replace(f"to='{ROOM}/bot' ", ""), *LEFT[1:]]
"""The client left all its rooms at once."""


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (LEFT, 1),
        (OFFLINE, 1),
        ([*LEFT, *JOIN, *ALIVE], 0),
        ([*OFFLINE, *JOIN, *ALIVE], 0),
        ([*LEFT, *JOIN, *LEFT], 1),
    ],
)
def test_that_a_client_left_its_room_is_told_until_it_asks_again(
    lines: list[str], count: int
) -> None:
    findings = [it for each in examined(*timed(*IN, *lines)) for it in each.findings()]
    left = [each for each in findings if each.cause == "left"]
    assert [(each.severity, each.about) for each in left] == [(Severity.NOTE, ROOM)] * count
    ended = examined(*timed(*IN, bounce("forbidden"), *lines))
    told = 'The client itself left the room "'  # an error does not hide that
    assert (told in verdict([it for each in ended for it in each.findings()])) == (count == 1)
    is_told = verdict(findings).endswith(f': The client itself left the room "{ROOM}".')
    assert (is_told, verdict(findings).startswith("No error was found.")) == (count == 1, True)


def test_to_speak_to_the_room_without_asking_is_named_as_such() -> None:
    findings = found(*timed(*IN, *LOGIN, says("hello"), *ALIVE))
    assert [each.cause for each in findings if each.name == "join"] == ["never-joined"]
