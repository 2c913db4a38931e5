r"""The formats of logs in which stanzas are found: one row each. Pure.

A format is a prefix that names the direction, then XML. A comment at each row names the code that
writes the format.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Format(NamedTuple):
    """How one kind of log writes a stanza."""

    name: str
    marks: tuple[str, ...]
    """Each line that begins a stanza has one of these. We look for them first, since that is
    quick."""
    pattern: re.Pattern[str]
    """Matches in a line that begins a stanza. Its groups are `word`, which names the direction,
    `xml`, and `session` if the log has several streams."""
    sent: frozenset[str]
    """The words that mark the client's stanzas. In a server's log the client's stanzas are those
    received, so these are the words for receiving."""
    raw: bool = False
    """Whether the log has the data of the socket, so that a stanza may go on in the next entry."""
    unescaped: Callable[[str], str] = str
    """Returns the XML itself; raises `ValueError` if the text is cut off."""
    means: Mapping[str, str] = {}
    """The XML for which some of the words stand."""


_ERLANG_END = r'"(?:/utf8)?>>[ \t]*(?:\n|$)'
_ERLANG_BINARY = re.compile(rf'<<"(.*?){_ERLANG_END}', re.DOTALL)
_ERLANG_LINES = re.compile(r'"[^\S\n]*\n\s*"')
_ERLANG_ESCAPE = re.compile(r"\\(x\{[0-9a-fA-F]{1,6}\}|[0-7]{1,3}|.)", re.DOTALL)
_ERLANG = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_PYTHON_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2})"""
_PYTHON_BYTES = re.compile(
    rf"""b(?:'((?:[ -&(-\[\]-~]++|{_PYTHON_ESCAPE})*)'|"((?:[ !#-\[\]-~]++|{_PYTHON_ESCAPE})*)")"""
)
"""A bytes literal as `repr` writes it."""
_ERLANG |= {"s": " ", "d": "\x7f"}


def _of_erlang(text: str) -> str:
    """Return the text of a binary in Erlang's notation; its broken lines are joined."""
    binary = _ERLANG_BINARY.match(text)
    if binary is None:
        raise ValueError
    value = _ERLANG_LINES.sub("", binary[1]) if "\n" in binary[1] else binary[1]
    return _ERLANG_ESCAPE.sub(_erlang_character, value)


def _erlang_character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code.startswith("x{"):
        return chr(int(code[2:-1], 16))
    return chr(int(code, 8)) if code.isdigit() else _ERLANG.get(code, code)


def _of_python(text: str) -> str:
    """Return the text of a bytes literal of Python."""
    literal = _PYTHON_BYTES.fullmatch(text.strip())
    if literal is None:
        raise ValueError
    data = (
        (literal[1] or literal[2] or "").encode("ascii").decode("unicode_escape").encode("latin-1")
    )
    return data.decode("utf-8", "replace")


_SENT = r"SEND|SENT|OUT|OUTGOING|TX|Sending|Sent|sending|sent|send|out|C|>>>|>>|-->|->|=>|→|⮊"
_RECEIVED = (
    r"RECV|RCVD|RECEIVED|IN|INCOMING|RX|Receiving|Received|receiving|received|recv|S"
    r"|<<<|<<|<--|<-|<=|←|⮈|in(?=\s*[:=|\])])"  # tracebacks of Python have `in <module>`
)
_NO_SENTENCE = r"(?!\w+>\s+[^\s<][^<]*$)"
"""Excludes a tag with a word behind it, and no other tag: Prosody's mod_smacks writes `Sending <r>
from c2s-pre-ondrain`."""
_TYPED = "Input received"
"""The words before a line that Profanity's user typed. The line may be XML."""

FORMATS = (
    # p1_xmpp's xmpp_socket.erl, at the level `debug`; the pid in brackets is the session's.
    Format(
        "ejabberd at debug level",
        (" XML on stream = ",),
        re.compile(
            r"(?:\((?:\w+\|)?(?P<session><[\d.]+>)\) )?(?P<word>Received|Send) XML on stream = "
            r"(?P<xml><<.*)"
        ),
        frozenset({"Received"}),
        raw=True,
        unescaped=_of_erlang,
    ),
    # mod_stanza_debug.lua, and mod_c2s.lua for the ends of streams; the session's name is a column
    # of Prosody's own logs.
    Format(
        "Prosody with mod_stanza_debug",
        ("\tdebug\t", " debug "),
        re.compile(
            r"(?P<session>(?:c2s|component|bosh|ws)[0-9a-f]+)\s+debug\s+"
            r"(?P<word>RECV:|SEND:|Received|Disconnecting client, <stream:error> is:) "
            rf"(?P<xml><{_NO_SENTENCE}.*)"
        ),
        frozenset({"RECV:", "Received"}),
    ),
    # aioxmpp/protocol.py writes `%r` of the data.
    Format(
        "aioxmpp",
        ("SENT b", "RECV b"),
        re.compile(r"\b(?P<word>SENT|RECV) (?P<xml>b(?:'.*|\".*))"),
        frozenset({"SENT"}),
        raw=True,
        unescaped=_of_python,
    ),
    # slixmpp and SleekXMPP: xmlstream.py (`SEND (IMMED)` in the latter); libstrophe: src/event.c
    # and src/conn.c, and so Profanity; `log --stanzas` and `watch --stanzas`; and the many programs
    # that write bare XML behind a word or an arrow.
    Format(
        "slixmpp, SleekXMPP, libstrophe, Profanity, or XML behind SEND and RECV, >>> and <<<",
        ("<",),
        re.compile(
            rf"(?:^|[\s\]\[|:)(\"'])(?P<word>{_TYPED}|{_SENT}|{_RECEIVED})"
            r"(?:\s\(\w+\))?[\s:=|\])]*['\"]?"
            # Python's repr of an object, as aioxmpp logs it too, has values without quotes.
            rf"(?P<xml><{_NO_SENTENCE}(?!\w+ \w+=[^'\"])[A-Za-z/?].*)"
        ),
        frozenset(_SENT.split("|")),
        means={_TYPED: ""},
    ),
    # Words for the end of a stream. slixmpp and SleekXMPP write them for the server's end. aioxmpp
    # writes them for the client's end, since its stream.py then ends the stream.
    Format(
        "the end of a stream in slixmpp, SleekXMPP and aioxmpp",
        ("End of stream rec", "sending stop signal to task"),
        re.compile(
            r"(?P<word>End of stream rec(?:ei|ie)ved|sending stop signal to task)(?P<xml>$)"
        ),
        frozenset({"sending stop signal to task"}),
        means=dict.fromkeys(
            (
                "End of stream received",
                "End of stream recieved",
                "sending stop signal to task",
            ),
            "</stream:stream>",
        ),
    ),
    # @xmpp/debug's index.js: the direction has a line of its own, and the XML is indented below it.
    # The server's headers and ends are there, each as a status; the client's are only statuses.
    Format(
        "@xmpp/debug",
        ("IN", "OUT", "status "),
        re.compile(
            r"(?:^|[\s⮈⮊])(?P<word>IN|OUT|status (?:open(?:ing)?|clos(?:e|ing)))"
            r"\s*(?P<xml>$|<stream:stream.*|\[object Object\]$)"
        ),
        frozenset({"OUT", "status opening", "status closing"}),
        means={
            "status opening": "<stream:stream>",
            "status closing": "</stream:stream>",
            "status close": "</stream:stream>",
        },
    ),
)
"""The formats, in the order in which we try them."""

JSON = "the JSON of `log --stanzas`, `watch --stanzas` or `xmppTrace`"
"""The name of our own format: objects with `direction`, `xml`, `at` and `connection`."""

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
