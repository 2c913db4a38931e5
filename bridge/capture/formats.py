r"""What cannot be learned from a log: words for directions, and how to get a log. Pure.

`directions` learns the rest. A comment at each row names the code that writes it.
"""

import re
from typing import NamedTuple

from bridge.text import quoted
from bridge.wire.names import CONDITIONS

SENT_WORDS = frozenset(
    (  # noqa: SIM905 - as a list it would take thirty lines
        "send sent sending sends out outgoing outbound tx xmit transmit transmitted transmitting "
        "write writing wrote written > → ⇒ ⮊ c request client output to up o "
        "gesendet sende senden enviado enviando envoyé envoi inviato verzonden wysłano skickat "
        "отправлено отправка 发送 送信 보냄"
    ).split()
)
"""Words that loggers write before what the client sends."""

RECEIVED_WORDS = frozenset(
    (  # noqa: SIM905 - as above
        "recv rcv rcvd recvd receive received recieved receiving receives in incoming inbound rx "
        "read reading got < ← ⇐ ⮈ s response reply server input from down i "
        "empfangen empfange recibido recibiendo reçu réception ricevuto ontvangen odebrano "
        "mottaget получено получение 接收 受信 받음"
    ).split()
)
"""Words that loggers write before what the client receives."""

WEAK_WORDS = frozenset(
    (  # noqa: SIM905 - as above
        "c s request response reply client server output input to from up down o i > < write read "
        "got"
    ).split()
)
"""Words that often mean something else. They count if the log also has the opposite word in the
same place."""

ALONE_WORDS = frozenset({"in", "out"})
"""Words that count as the last word before the XML only, or with their opposite: sentences and
tracebacks have them, too."""

CONTAINER = re.compile(
    r"""^(?:\S+\ +\|\ (?=\s*<|\s*[A-Z]{2,3}\s*$)                     # docker compose
      | \d{4}-\d\d-\d\dT\S+\ (?:stdout|stderr)\ [FP]\               # Kubernetes
      | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S+\ [^\s:]+:\     # journald, syslog
    )""",
    re.VERBOSE,
)
"""The text that containers and journald put in front of each line of a program's output."""


class StreamWords(NamedTuple):
    """A line without XML that stands for the end or the beginning of a stream."""

    mark: str
    """We look for it first, since that is quick."""
    pattern: re.Pattern[str]
    """Matches in such a line; what is before the match is the place of the logger."""
    sent: bool
    xml: str


_END = "</stream:stream>"
ROWS = (
    # slixmpp and SleekXMPP write this for the server's end.
    StreamWords("End of stream rec", re.compile("End of stream rec(?:ei|ie)ved$"), False, _END),
    # aioxmpp's stream.py writes this, and then ends the stream.
    StreamWords("sending stop", re.compile("sending stop signal to task$"), True, _END),
    # @xmpp/debug's index.js writes the client's headers, and the ends of both sides, as statuses.
    StreamWords("status op", re.compile(r"status opening\s*$"), True, "<stream:stream>"),
    StreamWords("status cl", re.compile(r"status closing\s*$"), True, _END),
    StreamWords("status cl", re.compile(r"status close\s*(?:\[object Object\]\s*)?$"), False, _END),
)

DISCONNECTING = re.compile(
    r"Disconnecting (?:client|component), <stream:error> is: (?=<|([a-z-]+)$)"
)
"""What Prosody's mod_c2s.lua and mod_component.lua write before an error that it sends, or before
the error's condition."""

TYPED = "Input received"
"""The words before a line that Profanity's user typed. The line may be XML."""

_PACKETS = "a packet capture: stream and passwords are encrypted in it"
_PACKED = "compressed: unpack it first"

NO_LOGS: dict[bytes, str] = {
    b"\xd4\xc3\xb2\xa1": _PACKETS,  # pcap, in either order of bytes, of micro- and nanoseconds
    b"\xa1\xb2\xc3\xd4": _PACKETS,
    b"\x4d\x3c\xb2\xa1": _PACKETS,
    b"\xa1\xb2\x3c\x4d": _PACKETS,
    b"\x0a\x0d\x0d\x0a": _PACKETS,  # pcapng
    b"\x1f\x8b": _PACKED,  # gzip
    b"\x28\xb5\x2f\xfd": _PACKED,  # Zstandard
    b"\xfd7zXZ": _PACKED,
    b"BZh": _PACKED,
    b"PK\x03\x04": _PACKED,  # zip
}
"""The first bytes of files that are no logs, and the kinds of these files. pcapng's first bytes
include a line's end."""

HOW_TO = """
slixmpp|sleekxmpp: slixmpp: logging.basicConfig(level=logging.DEBUG)
aioxmpp: aioxmpp: logging.basicConfig(level=logging.DEBUG)
nbxmpp|gajim: nbxmpp: logging.getLogger('nbxmpp').setLevel(logging.DEBUG)
xmpppy|xmpp.simplexml: xmpppy: xmpp.Client(SERVER, debug=['always', 'nodebuilder'])
(?<!lib)strophe|converse: Strophe, Converse: xmlInput and xmlOutput, or loglevel: 'debug'
xmpp.?js|@xmpp/|node_modules|\\[Circular: @xmpp/client: require('@xmpp/debug')(xmpp, true)
libstrophe|profanity: libstrophe, Profanity: XMPP_LEVEL_DEBUG, or profanity -l DEBUG
\\bsmack(?!s)|igniterealtime: Smack: SmackConfiguration.DEBUG = true
mellium: mellium.im/xmpp: xmpp.StreamConfig with TeeIn and TeeOut
gosrc|go-xmpp|fluux|matterbridge: go-xmpp: StreamLogger: os.Stdout in xmpp.Config, or Debug: true
tokio.xmpp|xmpp-rs|rust: tokio-xmpp: RUST_LOG=xmpp=trace,tokio_xmpp=trace
blather|xmpp4r: Blather, xmpp4r: Blather.logger.level = Logger::DEBUG, Jabber::debug = true
ejabberd: ejabberd: loglevel: debug
prosody|mod_|\\.lua: Prosody: modules_enabled = { "stanza_debug" } and log = { debug = "*console" }
jivesoftware.openfire: Openfire: its plugin Debugger Tools
libpurple|pidgin|finch: libpurple: pidgin --debug, PURPLE_VERBOSE_DEBUG=1
"""
"""In each line: what names a library in its log, the library, and what writes the stanzas to that
log."""


def how_to(begin: str) -> str:
    """Return how to get the stanzas into the log that begins so.

    The domain and the resource of an address name no library of this program. What has no dot
    behind its "@" is a set of packages in a path, which may. XML names programs of others.
    """
    begin = re.sub(r"<[^<>]*>|(?<=\w)@(?:localhost|[\w-]+\.)\S*", "", begin)
    for row in HOW_TO.strip().split("\n"):
        mark, library, how = row.split(": ", 2)
        if re.search(mark, begin, re.IGNORECASE):
            return f"the log seems to be from {library}; to get the stanzas into it: {how}"
    return (
        "switch on the program's debug log, which has the stanzas: in Python "
        "logging.basicConfig(level=logging.DEBUG), elsewhere the level debug"
    )


MAX_NAMED = 200
"""The most characters of a line that names a condition."""

_CONDITION = re.compile(
    rf"(?<![\w-])(?:{'|'.join(each for each in sorted(CONDITIONS) if '-' in each)})(?![\w-])"
    r"|(?:(?<=rror: )|(?<=rror )|(?<=rror type: )|(?<=xception: )|(?<=[<(,])|(?<=\(['\"])"
    r"|(?<=\(u'))(?:conflict|forbidden|gone|reset)\b|(?<=: )(?:conflict|forbidden)(?=\s*$)"
    r"|\b(?:conflict|forbidden|gone|reset)(?=\W+xmlns\b)",
    re.MULTILINE,
)
_SECRET = re.compile(
    r"(?<=>)[^<>\n]+(?=</(?!text))|(?:pass\w*|pwd|secret|token)[^\w<\n]{1,3}[^\s<>]+"
    r"|(?<![\w+/=-])(?!SCRAM-)(?=[A-Za-z+/=_-]*[0-9])[A-Za-z0-9+/=_-]{16,}",
    re.IGNORECASE,
)
"""What may be a secret in a line that is quoted: the text of an element, what follows a word for
a secret, and what looks like a key."""


_LEVELS = (
    re.compile(r"\w(?:Exception|Error): [^\n]{15}"),
    *(
        re.compile(
            rf"(?:\b(?:{each.upper()})\b|[\[=\"](?i:{each})\b|\s(?i:{each})(?::|[ \t]{{2}}|\t)"
            rf"|^[^\w\n]*(?i:{each})\b)[^\n]{{15}}",
            re.MULTILINE,
        )
        for each in ("fatal|severe|crit(?:ical)?|err(?:or)?", "warn(?:ing)?")
    ),
    re.compile(
        r"(?<=\d\d:\d\d)[^\n]*\b(?:fail|refus|den[iy]|invalid|unable|incorrect|timed out"
        r"|not found|can(?:not|'t))"
        r"|\b(?:auth\w*|login|connect\w*) (?:fail|refus)|\bfailed (?:auth|login|connect)"
        r"|\b(?:closed|disconnected): \w",
        re.IGNORECASE,
    ),
)
"""An exception; what a logger writes before an error, and before a warning, with the beginning of
its words; behind a time, or of a login or a connection, a word for what went wrong."""


def named_in(begin: str) -> str:
    """Return a clause with the first line that names the condition of an error.

    Many libraries write the condition into an exception, and the stanza nowhere. If none is named,
    return a clause with the first line that `_LEVELS` has, if there is one.
    """
    begin = _SECRET.sub("…", begin)
    patterns = (_CONDITION, re.compile("stream:error"), *_LEVELS)
    named = next(filter(None, (each.search(begin) for each in patterns)), None)
    if named is None:
        return ""
    at = max(begin.rfind("\n", 0, named.end()) + 1, named.end() - MAX_NAMED)
    line = begin[at:].partition("\n")[0].strip()
    what = "has" if named.re in _LEVELS else f"names {named[0]}:"
    return f"the log {what} {quoted(line, MAX_NAMED)}"
