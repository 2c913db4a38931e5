"""Telling streams apart, and the bounds within which that is done."""

import tracemalloc
from io import BufferedReader, BytesIO
from sys import setprofile
from types import FrameType

import pytest

from bridge.capture import capture as capturing
from bridge.capture.capture import Capture
from bridge.capture.examined import MAX_FINDINGS
from bridge.capture.finding import Severity
from bridge.capture.requests import MAX_MESSAGES
from bridge.capture.rooms import MAX_ROOMS, MAX_ROOMS_SHOWN
from bridge.capture.waiting import MAX_WAITING
from bridge.commands.explain import read_log
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    IN,
    JOIN,
    LOGIN,
    ROOM,
    SASL,
    captured,
    error,
    examined,
    found,
    out,
    said,
    says,
    timed,
)


def bounce(number: int) -> list[str]:
    back = f"<<< <message from='a{number}@b' type='error'>{error('gone')}</message>"
    return [f">>> <message to='a{number}@b'><body>hi</body></message>", back]


def test_as_many_findings_of_a_stream_are_kept_as_its_limit_and_errors_first() -> None:
    requests = [
        f"<<< <iq type='get' id='{n}' from='a@b'><q xmlns='urn:q{n}'/></iq>" for n in range(25)
    ]
    requests += ["<<< <presence/>"] * 5
    (stream,) = examined(*LOGIN, *requests)
    assert len(stream.findings()) == MAX_FINDINGS
    assert not stream.has_error()
    (stream,) = examined(*LOGIN, *requests, *bounce(0), *bounce(1), *bounce(2))
    severities = [each.severity for each in stream.findings()]
    assert severities.count(Severity.ERROR) == 3
    assert len(severities) == MAX_FINDINGS


def test_of_too_many_streams_the_oldest_without_an_error_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capturing, "MAX_STREAMS", 3)
    capture = Capture()
    for line in [*LOGIN, *bounce(1), *LOGIN, *LOGIN, *LOGIN, *LOGIN]:
        for each in captured(line):
            capture.take(each)
    assert (capture.left_out, len(capture.streams)) == (2, 3)
    assert [each.has_error() for each in capture.streams].count(True) >= 1


def calls_for(logins: int) -> int:
    """How many functions are called to read a log of so many logins that failed."""
    count, log = 0, [*LOGIN[:6], f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>"]

    def add(frame: FrameType, event: str, argument: object) -> None:
        del frame, argument
        nonlocal count
        count += event in {"call", "c_call"}

    lines = "\n".join(log * logins).encode()
    capture = Capture()
    setprofile(add)
    try:
        read_log(BufferedReader(BytesIO(lines)), "bot.log", capture)
        capture.finish()
    finally:
        setprofile(None)
    assert len(capture.streams) + capture.left_out == logins
    return count


def test_logins_that_fail_take_the_same_work_each_however_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capturing, "MAX_STREAMS", 100)
    assert calls_for(300) < 3.3 * calls_for(100)


def test_of_too_many_streams_at_once_the_silent_one_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capturing, "MAX_OPEN", 2)
    names = ("c2s1", "c2s2", "c2s3", "c2s3", "c2s1")
    streams = examined(*[f"{name}\tdebug\tRECV: <presence/>" for name in names])
    assert [each.stream.client.count for each in streams] == [1, 1, 2, 1]


def of_session(number: int, lines: list[str]) -> list[str]:
    """The lines as a server logs them, which sees them from the other side."""
    turned = {">": "RECV", "<": "SEND"}
    return [f"c2s{number}\tdebug\t{turned[line[0]]}: {line[4:]}" for line in lines]


@pytest.mark.parametrize("logins", [LOGIN[:6], LOGIN, [*LOGIN, ">>> </stream:stream>"]])
@pytest.mark.parametrize(("open_", "kept"), [(3, 1_000), (3, 4)])
def test_logins_of_others_take_no_finding_from_a_stream_that_goes_on(
    logins: list[str], open_: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "MAX_OPEN", open_)
    monkeypatch.setattr(capturing, "MAX_STREAMS", kept)
    log = of_session(0, IN)
    for number in range(1, 9):
        other = [line.replace(ACCOUNT, f"u{number}@example.org/r") for line in logins]
        log += [*of_session(number, other), *of_session(0, [said("Ann", "hi")])]
    log += of_session(0, [out(307), says("hi")])
    streams = [each for each in examined(*log) if each.stream.client.account == ACCOUNT]
    assert [[f.name for f in each.findings()] for each in streams] == [["removed", "removed"]]


def test_a_stanza_without_an_address_of_ours_is_of_the_stream_that_is_in_its_room() -> None:
    other = [line.replace(ACCOUNT, "other@example.org/r") for line in LOGIN]
    heard = f"<<< <message from='{ROOM}/Ann' type='groupchat'><body>hi</body></message>"
    first, second = examined(*IN, *other, heard, heard)
    assert (first.stream.client.count, second.stream.client.count) == (len(IN) + 2, len(other))


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
    assert len(stream.requests.waiting.open) <= MAX_WAITING
    assert len(stream.requests.messages) <= MAX_MESSAGES
    assert len(stream.rooms.by_jid) <= MAX_ROOMS


def test_of_a_stream_that_is_over_few_rooms_are_remembered() -> None:
    rooms = [ASK.replace("room@", f"room{number}@") for number in range(MAX_ROOMS_SHOWN + 1)]
    first, second = examined(*LOGIN, *rooms, *LOGIN)
    assert first.stream.client.account == second.stream.client.account == ACCOUNT
    assert len(first.stream.rooms.by_jid) == MAX_ROOMS_SHOWN


ANN, OTHER = "ann@example.org/x", "bot@example.org/r2"
PING = "<ping xmlns='urn:xmpp:ping'/>"


def of(account: str, lines: list[str], nickname: str = "Ann") -> list[str]:
    return [line.replace(ACCOUNT, account).replace("/bot", f"/{nickname}") for line in lines]


def both(account: str, line: str) -> list[str]:
    """What the room sends to both."""
    return [line, line.replace(ACCOUNT, account)]


def talk(account: str) -> list[str]:
    asked = [says("bot: ping"), *both(account, said("Ann", "bot: ping"))]
    return [*asked, says("pong"), *both(account, said("bot", "pong")), "pause 12"]


ANN_IN, OTHER_IN = of(ANN, IN), of(OTHER, IN)
SEEN = JOIN[1].replace("<status code='110'/>", "")
ENTERING = [
    *[JOIN[1], SEEN.replace(ACCOUNT, ANN)],
    *[SEEN.replace("/bot", "/Ann"), *of(ANN, JOIN[1:])],
]
"""What the room sends to both when the bot enters, and then Ann."""
TOGETHER = {
    "talk": [*IN, *ANN_IN, *talk(ANN) * 3],
    "come in, in turns": [*LOGIN, *of(ANN, LOGIN), *JOIN, says("hi"), *of(ANN, JOIN), *talk(ANN)],
    "ask together": [*LOGIN, *of(ANN, LOGIN), ASK, *of(ANN, [ASK]), *ENTERING, *talk(ANN)],
    "ping": [
        *[*IN, *ANN_IN, f">>> <iq type='get' id='1' to='a@b'>{PING}</iq>"],
        f"<<< <iq type='get' id='2' from='a@b' to='{ACCOUNT}'>{PING}</iq>",
        f"<<< <iq type='result' id='1' from='a@b' to='{ACCOUNT}'/>",
        *both(ANN, said("Ben", "x"))[1:],
        *[">>> <iq type='result' id='2' to='a@b'/>", "pause 12", *both(ANN, said("Ben", "x"))],
    ],
    "acknowledge": [
        *[*IN, *ANN_IN, ">>> <r xmlns='urn:xmpp:sm:3'/>", said("Ben", "x")],
        *["<<< <a xmlns='urn:xmpp:sm:3' h='1'/>", "pause 12", *both(ANN, said("Ben", "x"))],
    ],
    "have one account": [*IN, *OTHER_IN, *both(OTHER, said("Ben", "x")), *talk(OTHER)],
    "go and come": [*IN, *ANN_IN, out(307), says("bye"), *JOIN, *both(ANN, said("Ben", "x"))],
}
"""What two clients do whose streams are in one log, which tells only what is for whom."""


@pytest.mark.parametrize("what", TOGETHER)
def test_of_two_clients_in_one_log_none_is_blamed_for_the_other(what: str) -> None:
    findings = [it for each in examined(*timed(*TOGETHER[what])) for it in each.findings()]
    kinds = {(each.name, each.severity) for each in findings if each.severity != Severity.NOTE}
    assert kinds <= {("removed", Severity.WARNING)}
    assert "renamed" not in [each.cause for each in findings]


def test_a_stream_broke_if_only_another_resource_of_its_account_goes_on() -> None:
    findings = found(*timed(*IN, *of(OTHER, LOGIN), says("hi")))
    assert [each.name for each in findings] == ["ended", "join"]
