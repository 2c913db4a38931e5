"""Of several errors in a log, the verdict is the earliest that explains the others."""

import pytest

from bridge.capture.finding import Severity
from bridge.capture.verdict import verdict
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    HEADER,
    IN,
    JOIN,
    LOGIN,
    MECHANISMS,
    ROOM,
    SASL,
    STARTTLS,
    bounce,
    error,
    examined,
    found,
    out,
    refusal,
    said,
    says,
    stream_error,
    timed,
)

REFUSED = f"<<< <failure xmlns='{SASL}'><{{}}/></failure>"
PLAIN = f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AA==</auth>"
ERROR_TO_ROOM = f">>> <message to='{ROOM}' type='error'>{error('bad-request')}</message>"
CLOSED = "<<< </stream:stream>"
ELSEWHERE = [line.replace("room@", "elsewhere@") for line in JOIN]

CASES: dict[str, tuple[list[str], str, list[str]]] = {
    "TLS not begun, so no login": (
        [
            f">>> {HEADER}",
            f"<<< <stream:features>{STARTTLS}{MECHANISMS}</stream:features>",
            PLAIN,
            REFUSED.format("not-authorized"),
            stream_error("not-authorized"),
        ],
        "requires TLS",
        ["tls", "login", "ended"],
    ),
    "TLS begun where it is not offered": (
        [
            f">>> {HEADER}",
            f"<<< <stream:features>{MECHANISMS}</stream:features>",
            ">>> <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            stream_error("not-authorized"),
        ],
        "which the server does not offer",
        ["tls", "ended"],
    ),
    "a wrong password, until the server has had enough": (
        [
            *LOGIN[:6],
            REFUSED.format("not-authorized"),
            PLAIN,
            REFUSED.format("malformed-request"),
            stream_error("policy-violation"),
        ],
        "refused the login",
        ["login", "login", "ended"],
    ),
    "never joined, until the server has had enough": (
        [*LOGIN, says("hi"), bounce("not-acceptable"), stream_error("policy-violation")],
        "never asked to join",
        ["join", "refused", "ended"],
    ),
    "a loop, until the server has had enough": (
        [
            *timed(*IN, *[said("Other", "bot: hi"), says("Other: hi")] * 6),
            bounce("policy-violation"),
            stream_error("policy-violation"),
        ],
        "answer each other",
        ["misplaced", "refused", "ended"],
    ),
    "an error to the room, for which it was kicked": (
        [*IN, ERROR_TO_ROOM, out(307), says("hi"), bounce("not-acceptable")],
        "sent an error",
        ["misplaced", "removed", "refused"],
    ),
    "too fast, for which it was kicked": (
        [
            *IN,
            says("hi"),
            bounce("policy-violation"),
            out(307),
            says("a"),
            stream_error("policy-violation"),
        ],
        "too fast",
        ["refused", "removed", "ended"],
    ),
    "a forbidden character, and after it the room was not joined again": (
        [
            *IN,
            says("a\x0bb"),
            stream_error("not-well-formed"),
            *LOGIN,
            says("hi"),
            bounce("not-acceptable"),
        ],
        "U+000B",
        ["ended", "join", "refused"],
    ),
    "a friend who is not there, and then a ban": (
        [
            *LOGIN,
            says("hi", "a@nowhere", "chat"),
            bounce("remote-server-not-found", "a@nowhere"),
            ASK,
            refusal("forbidden"),
            says("hi"),
            bounce("not-acceptable"),
        ],
        "banned",
        ["refused", "join", "join", "refused"],
    ),
    "too fast for one room, and errors to another": (
        [
            *IN,
            *ELSEWHERE,
            says("hi", "elsewhere@muc.example.org"),
            bounce("policy-violation", "elsewhere@muc.example.org"),
            ERROR_TO_ROOM,
            out(307),
            says("a"),
        ],
        "sent an error",
        ["refused", "misplaced", "removed"],
    ),
    "it broke, and the room wants a password of the client that came back": (
        timed(*IN, "pause 9", *LOGIN, ASK, refusal("not-authorized")),
        "wants a password",
        ["ended", "join"],
    ),
    "cut at a period, and the room was not joined again": (
        timed(
            *[*IN, "pause 60", CLOSED],
            *[*LOGIN, says("hi"), bounce("not-acceptable"), "pause 60", CLOSED] * 2,
        ),
        "3 streams",
        ["ended", "ended", *["join", "refused", "ended"] * 2],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_is_the_earliest_error_that_explains_the_others(case: str) -> None:
    log, words, names = CASES[case]
    findings = found(*log)
    assert [each.name for each in findings if each.severity is Severity.ERROR] == names
    assert words in verdict(findings)


OTHER = [line.replace(ACCOUNT, "other@example.org/r") for line in [*IN]]
TOO_LATE = [out(307), says("a"), bounce("not-acceptable"), bounce("forbidden")]
TOO_LATE = [line.replace(ACCOUNT, "other@example.org/r") for line in TOO_LATE]
LOCKED_OUT = [*LOGIN[:6], REFUSED.format("not-authorized")]
CLIENTS: dict[str, tuple[list[str], str, int]] = {
    "an error of one client explains none of the other's": (
        [*LOGIN, says("hi"), *OTHER, *TOO_LATE],
        "went on speaking",
        1,
    ),
    "a stream that names no account is that of the log's only account": (
        [*IN, stream_error("policy-violation"), *LOCKED_OUT],
        "one of its rules",
        0,
    ),
    "of several accounts it is none": (
        [*IN, stream_error("policy-violation"), *OTHER, *LOCKED_OUT],
        "one of its rules",
        1,
    ),
}
"""Logs of several clients; the words of the verdict, and how many other clients have errors."""


@pytest.mark.parametrize("case", CLIENTS)
def test_the_verdict_explains_within_a_client_and_counts_the_others(case: str) -> None:
    log, words, others = CLIENTS[case]
    told = verdict(found(*log))
    assert words in told
    assert told.partition("Other clients with errors: ")[2] == (f"{others}." if others else "")


def test_an_end_without_a_reason_tells_what_else_happened_to_its_client_only() -> None:
    refused = f"<<< <iq type='error' id='r' from='example.org'>{error('forbidden')}</iq>"
    (stream,) = examined(*IN, refused, CLOSED)
    findings = stream.findings()
    assert "forbidden" in verdict(findings)
    of_other = [each._replace(client="x") if each.name == "refused" else each for each in findings]
    assert "forbidden" not in verdict(of_other)
    (stream,) = examined(*IN, refused, stream_error("conflict"))
    assert "forbidden" not in verdict(stream.findings())


ASKED = [said("Ann", "bot: ping"), said("Ann", "!ping"), said("Ben", "is bot there")]
GROUNDS: dict[str, tuple[list[str], str]] = {
    "three messages were not answered": ([*IN, *ASKED], "bot.log:15: 3 messages named the client"),
    "none was": ([*IN, said("Ann", "hi")], ""),
    "it said something": ([*IN, *ASKED, says("pong")], ""),
    "it said something before only": ([*IN, says("hello"), *ASKED], "3 messages named the client"),
    "it answered before only": (
        [*IN, said("Ann", "!ping"), says("pong"), said("Ann", "!status"), said("Ann", "!status")],
        "bot.log:17: 2 messages since it last spoke named the client, or were commands",
    ),
    "it passed over one command": (
        [*IN, said("Ann", "!ping"), says("pong"), said("Ann", "!roll"), said("Ann", "thanks")],
        "",
    ),
    "only what was received": (
        [said("Ann", "a"), said("Ann", "b")],
        "only what the client received",
    ),
    "it is in no room": ([*LOGIN, "<<< <presence/>"], "logged in, and has asked to join no room."),
    "another stream goes on": ([*IN, *ASKED, *LOGIN], "3 messages named the client"),
}
"""Logs without an error, and a part of what the verdict says beside that."""


@pytest.mark.parametrize("case", GROUNDS)
def test_the_verdict_clears_nobody_without_ground(case: str) -> None:
    log, words = GROUNDS[case]
    every = [each for stream in examined(*log) for each in stream.findings()]
    conclusion = verdict([each for each in every if each.severity != Severity.ERROR])
    assert conclusion.startswith("No error was found.")
    assert words in conclusion
    assert bool(words) or conclusion == "No error was found."


PINGS = [*IN, said("Ann", "!ping"), says("pong"), said("Ann", "!ping")]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (PINGS, "bot.log:17: 1 message named the client, or was a command, and it did not answer"),
        ([*PINGS, says("pong")], ""),
        ([*PINGS, said("Ann", "bot: hi")], "bot.log:17: 1 message named the client"),
        ([*IN, said("Ann", "bot: hi")], ""),
    ],
)
def test_a_command_that_was_named_is_noted_though_the_log_ends_too_soon(
    log: list[str], words: str
) -> None:
    (stream,) = examined(*log, command="!ping")
    conclusion = verdict(stream.findings())
    assert conclusion.startswith("No error was found.")
    assert words in conclusion
    assert bool(words) or conclusion == "No error was found."


SM = "xmlns='urn:xmpp:sm:3'"
CHAT = says("hi", "ann@example.org", "chat")
MANAGED = [*LOGIN, f">>> <enable {SM}/>", f"<<< <enabled {SM}/>", f">>> <a {SM} h='{{}}'/>"]
COUNTS: dict[str, tuple[list[str], int, str]] = {
    "a message without an answer": (
        [*IN, said("Ann", "!ping")],
        1,
        "1 message named the client, or was a command, and it did not answer",
    ),
    "messages without an answer": (
        [*IN, *ASKED],
        3,
        "3 messages named the client, or were commands, and it answered none",
    ),
    "a message that was answered in no type for a room": (
        [*IN, said("Ann", "!ping"), says("pong", type_="normal")],
        1,
        'and it did not answer, but sent a message of type "normal" to "room@muc.example.org"',
    ),
    "a message that was answered in vain, and then well": (
        [*IN, said("Ann", "!a"), says("b", type_="normal"), says("c"), *[said("Ann", "!d")] * 2],
        2,
        "2 messages since it last spoke named the client, or were commands, and it answered none; ",
    ),
    "a stanza too many": ([*MANAGED, CHAT], 1, "acknowledged 1 stanza, and had got 0"),
    "stanzas too many": ([*MANAGED, CHAT], 2, "acknowledged 2 stanzas, and had got 0"),
    "stanzas too many, for which the server ended the stream": (
        [*MANAGED, stream_error("undefined-condition")],
        2,
        "A warning: bot.log:15: The client acknowledged 2 stanzas, and had got 0",
    ),
}
"""Logs, the count in them, and how the verdict says it."""


@pytest.mark.parametrize("case", COUNTS)
def test_the_verdict_counts_one_as_one(case: str) -> None:
    log, count, words = COUNTS[case]
    streams = examined(*(line.replace("{}", str(count)) for line in log))
    assert words in verdict([each for stream in streams for each in stream.findings()])
