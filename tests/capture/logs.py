"""Logs in one plain format, from which tests make what they need."""

from collections.abc import Iterator

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.finding import Finding, Severity
from bridge.capture.reader import LogReader
from bridge.capture.stanza import Stanza

STREAMS = "http://etherx.jabber.org/streams"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
BIND = "urn:ietf:params:xml:ns:xmpp-bind"
USER = "http://jabber.org/protocol/muc#user"
STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
ROOM = "room@muc.example.org"
ACCOUNT = "bot@example.org/r"

HEADER = f"<stream:stream xmlns='jabber:client' xmlns:stream='{STREAMS}' to='example.org'>"
MECHANISMS = f"<mechanisms xmlns='{SASL}'><mechanism>SCRAM-SHA-1</mechanism></mechanisms>"

STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"

LOGIN = [
    f">>> {HEADER}",
    f"<<< {HEADER}",
    f"<<< <stream:features>{MECHANISMS}</stream:features>",
    f">>> <auth xmlns='{SASL}' mechanism='SCRAM-SHA-1'>biwsbj1ib3Qscj14</auth>",
    f"<<< <challenge xmlns='{SASL}'>cj14</challenge>",
    f">>> <response xmlns='{SASL}'>Yz1iaXdz</response>",
    f"<<< <success xmlns='{SASL}'>dj14</success>",
    f">>> {HEADER}",
    f"<<< {HEADER}",
    "<<< <stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
    ">>> <iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
    f"<<< <iq type='result' id='b'><bind xmlns='{BIND}'><jid>{ACCOUNT}</jid></bind></iq>",
]
SEAT = "<item affiliation='none' role='participant'/><status code='110'/>"
ASK = f">>> <presence to='{ROOM}/bot'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
JOIN = [
    ASK,
    f"<<< <presence from='{ROOM}/bot' to='{ACCOUNT}'><x xmlns='{USER}'>{SEAT}</x></presence>",
]
IN = [*LOGIN, *JOIN]
PUZZLE = (
    f"<<< <message from='{ROOM}' to='{ACCOUNT}'><body>Visit https://x/1</body>"
    "<captcha xmlns='urn:xmpp:captcha'/></message>"
)


def error(condition: str, text: str = "") -> str:
    said = f"<text xmlns='{STANZAS}'>{text}</text>" if text else ""
    return f"<error type='cancel'><{condition} xmlns='{STANZAS}'/>{said}</error>"


def stream_error(condition: str) -> str:
    return f"<<< <stream:error><{condition} xmlns='{STREAM_ERRORS}'/></stream:error>"


def refusal(condition: str) -> str:
    return (
        f"<<< <presence from='{ROOM}/bot' to='{ACCOUNT}' type='error'>{error(condition)}</presence>"
    )


def bounce(condition: str, from_: str = ROOM) -> str:
    who = f"from='{from_}' to='{ACCOUNT}' id='m1'"
    return f"<<< <message {who} type='error'>{error(condition)}</message>"


def out(*codes: int, more: str = "") -> str:
    """The client's own presence that says that it is out, with these codes."""
    statuses = "".join(f"<status code='{code}'/>" for code in (110, *codes))
    item = f"<item affiliation='none' role='none'>{more}</item>"
    return (
        f"<<< <presence from='{ROOM}/bot' to='{ACCOUNT}' type='unavailable'>"
        f"<x xmlns='{USER}'>{item}{statuses}</x></presence>"
    )


def said(nickname: str, body: str, **attributes: str) -> str:
    more = "".join(f" {name}='{value}'" for name, value in attributes.items())
    return (
        f"<<< <message from='{ROOM}/{nickname}' to='{ACCOUNT}' type='groupchat'{more}>"
        f"<body>{body}</body></message>"
    )


def says(body: str, to: str = ROOM, type_: str = "groupchat", id_: str = "m1") -> str:
    return f">>> <message to='{to}' type='{type_}' id='{id_}'><body>{body}</body></message>"


def timed(*lines: str, step: float = 0.1) -> list[str]:
    """The lines, each `step` seconds after the one before; a number is a further pause."""
    seconds, result = 0.0, []
    for line in lines:
        seconds += step
        if line.startswith("pause "):
            seconds += float(line.removeprefix("pause "))
            continue
        minutes, rest = divmod(seconds, 60)
        result.append(f"12:{minutes:02.0f}:{rest:06.3f} {line}")
    return result


def captured(*lines: str) -> Iterator[Stanza]:
    reader = LogReader("bot.log")
    for line in lines:
        yield from reader.feed(line.encode() + b"\n")
    yield from reader.end()


def examined(*lines: str, command: str = "") -> list[Examined]:
    capture = Capture(command=command)
    for each in captured(*lines):
        capture.take(each)
    capture.finish()
    return capture.streams


def found(*lines: str, command: str = "") -> list[Finding]:
    """What was found in a log, without notes."""
    streams = examined(*lines, command=command)
    every = [finding for stream in streams for finding in stream.findings()]
    return [finding for finding in every if finding.severity is not Severity.NOTE]
