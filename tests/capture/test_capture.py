"""Telling streams apart, and the bounds within which that is done."""

import tracemalloc

import pytest

from bridge.capture import capture as capturing
from bridge.capture.capture import Capture
from bridge.capture.finding import Severity
from bridge.capture.stream import MAX_MESSAGES, MAX_ROOMS, MAX_ROOMS_SHOWN, MAX_WAITING
from tests.capture.logs import ACCOUNT, ASK, IN, LOGIN, ROOM, captured, error, examined


def bounce(number: int) -> str:
    return f"<<< <message from='a{number}@b' type='error'>{error('gone')}</message>"


def test_as_many_findings_of_a_stream_are_kept_as_its_limit_and_errors_first() -> None:
    requests = [
        f"<<< <iq type='get' id='{n}' from='a@b'><q xmlns='urn:q{n}'/></iq>" for n in range(25)
    ]
    requests += ["<<< <presence/>"] * 5
    (stream,) = examined(*LOGIN, *requests)
    assert len(stream.findings()) == capturing.MAX_FINDINGS
    assert not stream.has_error()
    (stream,) = examined(*LOGIN, *requests, *map(bounce, range(3)))
    severities = [each.severity for each in stream.findings()]
    assert severities.count(Severity.ERROR) == 3
    assert len(severities) == capturing.MAX_FINDINGS


def test_of_too_many_streams_the_oldest_without_an_error_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capturing, "MAX_STREAMS", 3)
    capture = Capture()
    for line in [*LOGIN, bounce(1), *LOGIN, *LOGIN, *LOGIN, *LOGIN]:
        for each in captured(line):
            capture.take(each)
    assert (capture.left_out, len(capture.streams)) == (2, 3)
    assert [each.has_error() for each in capture.streams].count(True) >= 1


def test_of_too_many_streams_at_once_the_first_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capturing, "MAX_OPEN", 2)
    names = ("c2s1", "c2s2", "c2s3", "c2s3", "c2s1")
    streams = examined(*[f"{name}\tdebug\tRECV: <presence/>" for name in names])
    assert [each.stream.count for each in streams] == [1, 1, 2, 1]


def test_a_stanza_without_an_address_of_ours_is_of_the_stream_that_is_in_its_room() -> None:
    other = [line.replace(ACCOUNT, "other@example.org/r") for line in LOGIN]
    heard = f"<<< <message from='{ROOM}/Ann' type='groupchat'><body>hi</body></message>"
    first, second = examined(*IN, *other, heard, heard)
    assert (first.stream.count, second.stream.count) == (len(IN) + 2, len(other))


LONG = "x" * 10_000


@pytest.mark.parametrize(
    "line",
    [
        "<<< <iq type='get' id='{n}-{x}' from='{x}'><q xmlns='urn:q'/></iq>",
        ">>> <message to='{x}' id='{n}-{x}' type='{x}'><body>{x}</body></message>",
        "<<< <message from='r{n}@m/{x}' to='{x}'><body>{n} {x}</body></message>",
        ">>> <presence to='room{n}@muc/{x}'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
    ],
    ids=["requests", "sent", "heard", "rooms"],
)
def test_what_is_remembered_of_a_stream_is_small(line: str) -> None:
    capture = Capture()
    tracemalloc.start()
    try:
        for number in range(300):
            for each in captured(line.format(n=number, x=LONG)):
                capture.take(each)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
    stream = capture.streams[0].stream
    assert len(stream.waiting) <= MAX_WAITING
    assert len(stream.messages) <= MAX_MESSAGES
    assert len(stream.rooms) <= MAX_ROOMS


def test_of_a_stream_that_is_over_few_rooms_are_remembered() -> None:
    rooms = [ASK.replace("room@", f"room{number}@") for number in range(MAX_ROOMS_SHOWN + 1)]
    first, second = examined(*LOGIN, *rooms, *LOGIN)
    assert first.stream.account == second.stream.account == ACCOUNT
    assert len(first.stream.rooms) == MAX_ROOMS_SHOWN
