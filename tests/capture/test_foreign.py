"""Logs as people paste them in public trackers: what the verdict names, and what stays silent."""

import pytest

from bridge.capture.finding import Finding
from bridge.capture.verdict import verdict
from tests.capture.logs import (
    ASK,
    IN,
    JOIN,
    LOGIN,
    PUZZLE,
    ROOM,
    SASL,
    STREAM_ERRORS,
    bounce,
    error,
    examined,
    found,
    refusal,
    said,
    says,
    stream_error,
    timed,
)

SM = "urn:xmpp:sm:3"
FAILURE = f"<<< <failure xmlns='{SASL}'><{{}}/></failure>"
PLAIN = f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGE=</auth>"
PING = "<<< <iq from='example.org' id='{}' type='get'><ping xmlns='urn:xmpp:ping'/></iq>"
PONG = PING.replace("<<<", ">>>").replace("from", "to").replace("get", "result")
TIMEOUT = stream_error("connection-timeout")
CHAT = says("hi", "ann@x.example", "chat")
ARCHIVED = (
    f"<<< <message from='{ROOM}'><result xmlns='urn:xmpp:mam:2'>"
    f"<forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' from='{ROOM}/Ann'>"
    f"<body>{{}}</body></message></forwarded></result></message>"
)
ANSWERS = [says("sun", id_="a1"), says("rain", id_="a2")]
SUCCESS = f"<<< <success xmlns='{SASL}'/>"
MEMBERS = refusal("registration-required")
ECHOES = [
    line
    for n in range(9)
    for line in (
        says(f"so: {'so: ' * n}hi", id_=f"e{n}"),
        said("bo", f"so: {'so: ' * n}hi", id=f"e{n}"),
    )
]
LOOP = [said("other", "bot: what?"), says("other: what?", id_=""), said("bot", "other: what?")]
RESUME = [f">>> <resume xmlns='{SM}' previd='a' h='1'/>", f"<<< <failed xmlns='{SM}'/>"]
TLS = "xmlns='urn:ietf:params:xml:ns:xmpp-tls'"
UPLOAD = "<request xmlns='urn:xmpp:http:upload:0'/>"
OLD = "<iq {}='example.org' id='a' type='{}'><query xmlns='jabber:iq:auth'/>{}</iq>"
TOO_LARGE = error("not-acceptable", "too large")
SHUTDOWN = f"<system-shutdown xmlns='{STREAM_ERRORS}'/>"
PONGS = [f"<<< <iq type='result' id='{number}'/>" for number in range(120)]
BLOCKED = "<blocked xmlns='urn:xmpp:blocking:errors'/></error>"

NAMED: dict[str, tuple[list[str], str]] = {
    "the server pinged in vain": (
        [says("a"), PING.format(1), says("b"), TIMEOUT],
        'the server\'s request "{urn:xmpp:ping}ping" in line 2',
    ),
    "the server asked for an acknowledgement in vain": (
        [f"<<< <r xmlns='{SM}'/>", says("b"), TIMEOUT],
        "never answered the server's r (XEP-0198) in line 1",
    ),
    "the server pinged in vain, and ended the stream without a word": (
        [*IN, PING.format(1), *[says("a")] * 9, "<<< </stream:stream>"],
        "Let the client answer what the server asks",
    ),
    "another login before the first was over": (
        [*LOGIN[:3], PLAIN, PLAIN, SUCCESS, stream_error("invalid-namespace")],
        "Let the client log in once",
    ),
    "a login by ANONYMOUS": (
        [*LOGIN[:3], PLAIN.replace("PLAIN", "ANONYMOUS"), SUCCESS, *LOGIN[7:], ASK, MEMBERS],
        '"bot@example.org" (of this stream alone, by the mechanism ANONYMOUS) is not one',
    ),
    "a join before a resource": (
        [*LOGIN[:10], ASK, refusal("service-unavailable")],
        'refused the request "presence", since the client had no resource yet',
    ),
    "stream management before a resource": (
        [*LOGIN[:10], f">>> <enable xmlns='{SM}'/>", f"<<< <failed xmlns='{SM}'/>"],
        "had no resource yet",
    ),
    "a nickname for an address": (
        [*IN, said("Ann", "!ping"), says("pong", "ann", "chat"), bounce("not-allowed", "ann")],
        'The message went to "ann", which names a server alone',
    ),
    "answers to a room's archive": (
        [*IN, ARCHIVED.format("!say sun"), ARCHIVED.format("!say rain"), *ANSWERS],
        "The client answers the history",
    ),
    "answers to itself under a nickname that it did not ask for": (
        [*LOGIN, ASK, JOIN[1].replace("/bot'", "/bo'"), said("Ann", "hi"), *ECHOES],
        'It asked for the nickname "bot" there, and got "bo".',
    ),
    "a bad character is the first thing": (
        [says("a&#x1b;b"), stream_error("not-well-formed")],
        "the character U+001B",
    ),
    "the client's nickname shows in what comes back alone": (LOOP * 8, "answer each other"),
    "a captcha for a join that the log does not have": ([PUZZLE], "CAPTCHA"),
    "a login of the time before SASL": (
        [
            f">>> {OLD.format('to', 'set', '')}",
            f"<<< {OLD.format('from', 'error', error('not-authorized'))}",
        ],
        "refused the login",
    ),
    "a resumption is refused": (RESUME, "A warning: bot.log:2: The server refused to resume"),
    "TLS was begun, and nothing followed": (
        [f">>> <starttls {TLS}/>", f"<<< <proceed {TLS}/>"],
        "may not trust the certificate",
    ),
    "a request is refused, with the reason": (
        [
            f">>> <iq to='up.x.example' id='u' type='get'>{UPLOAD}</iq>",
            f"<<< <iq from='up.x.example' id='u' type='error'>{TOO_LARGE}</iq>",
        ],
        '(not-acceptable) ("too large")',
    ),
    "an address that the client's own account has blocked": (
        [
            CHAT,
            bounce("not-acceptable", "ann@x.example").replace("</error>", BLOCKED),
        ],
        "has blocked that address",
    ),
    "a private message in a room whose join the log does not have": (
        [says("a", f"{ROOM}/Ann", "chat"), bounce("forbidden", f"{ROOM}/Ann")],
        "refused the private message",
    ),
    "an account that takes no message": (
        [CHAT, bounce("service-unavailable", "ann@x.example")],
        "there may be no such account",
    ),
    "a component at the port for clients": (
        [LOGIN[0], stream_error("invalid-namespace")],
        "a component needs the port for components",
    ),
    "the domain of the header is not served": (
        [LOGIN[0], stream_error("host-unknown")],
        'does not serve the domain "example.org"',
    ),
    "no header in the excerpt": ([stream_error("host-unknown")], "the domain of the client"),
    "Prosody refuses a component": (
        ["Disconnecting component, <stream:error> is: " + stream_error("host-unknown")[4:]],
        "a component's name",
    ),
    "Prosody names the condition alone": (
        ["Disconnecting component, <stream:error> is: not-well-formed"],
        "escape what it puts into XML",
    ),
    "a stream error without its brackets, which a web page ate": (
        [f"RECV: stream:error{SHUTDOWN}/stream:error", "End of stream received"],
        "is shutting down",
    ),
    "a header that either side may have sent": (
        timed(ASK, "x status open <open xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>", *PONGS),
        "never answered the client's request to be let in",
    ),
    "a logger that says Send and Read": (
        [
            f"XML::Stream: Send: ({CHAT[4:]})",
            f"XML::Stream: Read: buff({bounce('gone', 'ann@x.example')[4:]})",
        ],
        "Nobody is there at",
    ),
}
"""Excerpts, and a part of the verdict."""


@pytest.mark.parametrize("case", NAMED)
def test_the_verdict_names_what_the_excerpt_shows(case: str) -> None:
    log, words = NAMED[case]
    assert words in verdict(_every(log))


def test_a_room_that_joining_made_is_a_note_and_no_part_of_an_all_clear() -> None:
    log = [*LOGIN, ASK, JOIN[1].replace("'110'/>", "'110'/><status code='201'/>")]
    (stream,) = examined(*log)
    assert [it.cause for it in stream.findings()] == ["created"]
    assert verdict(stream.findings()) == "No error was found."


TAKEN = refusal("conflict")
SECOND = [line.replace("/bot'", "/bot_'") for line in JOIN]
SILENT: dict[str, list[str]] = {
    "a login that failed, and then did not": [
        *[PLAIN, FAILURE.format("temporary-auth-failure"), PLAIN],
        f"<<< <success xmlns='{SASL}'/>",
    ],
    "three that failed": [
        *[PLAIN, FAILURE.format("not-authorized")] * 3,
        *[PLAIN, f"<<< <success xmlns='{SASL}'/>"],
    ],
    "a nickname that was taken, and then another": [*LOGIN, ASK, TAKEN, *SECOND],
    "two that were taken": [*LOGIN, ASK, TAKEN, ASK, TAKEN, *SECOND],
    "a room without its password, and then with it": [
        *[*LOGIN, ASK, refusal("not-authorized"), *JOIN]
    ],
    "a room that repeats what another said": [
        *[said("other", "hi"), says("hi", id_="1"), said("bot", "hi", id="1")],
        *[said("other", "ho"), says("so", id_="2"), said("bot", "so", id="2")],
    ],
    "a captcha of somebody, on a stream that the log has from its beginning": [
        *IN,
        PUZZLE.replace(ROOM, "eve@evil.example"),
    ],
}
"""What a client got over by itself, and what only looks wrong."""


@pytest.mark.parametrize("case", SILENT)
def test_what_the_client_got_over_soon_is_no_error(case: str) -> None:
    assert found(*SILENT[case]) == []


def test_a_refusal_is_an_error_if_no_later_try_succeeded() -> None:
    for log in ([PLAIN, FAILURE.format("not-authorized")] * 2, [*LOGIN, *[ASK, TAKEN] * 2]):
        assert [each.severity for each in found(*log)] == ["error"]


def test_a_ping_that_was_answered_is_not_blamed_for_a_timeout() -> None:
    log = [*IN, PING.format(1), PONG.format(1), TIMEOUT]
    (ended,) = found(*log)
    assert "never answered" not in ended.message


def test_a_ping_of_a_stranger_is_not_blamed_for_a_timeout() -> None:
    ping = PING.format(1).replace("example.org", "eve@evil.example/x")
    (ended,) = found(*[*IN, ping, TIMEOUT])
    assert "never answered" not in ended.message


def _every(log: list[str]) -> list[Finding]:
    return [each for stream in examined(*log) for each in stream.findings()]
