"""Writes stanzas as libraries, servers and containers do, each with the time where it has one."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tests.capture.healthy import Passed

BEGIN = datetime(2026, 11, 24, 17, 49, 31, tzinfo=UTC).timestamp()


def erlang(xml: str) -> str:
    escaped = xml.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'<<"{escaped}"/utf8>>'


def spread(xml: str) -> str:
    """As ltx lays it out."""
    return xml.replace("><", ">\n  <")


def word(sent: bool) -> str:
    return "SEND" if sent else "RECV"


def server_word(sent: bool) -> str:
    """The same in the log of a server, which sees it from the other side."""
    return word(not sent)


WRITERS: dict[str, Callable[[bool, str, datetime], str]] = {
    "slixmpp": lambda sent, xml, at: f"{at:%F %T},{ms(at)} DEBUG    {word(sent)}: {xml}",
    "slixmpp without times": lambda sent, xml, at: f"DEBUG    {word(sent)}: {xml}",
    "SleekXMPP": lambda sent, xml, at: f"DEBUG {'SEND (IMMED)' if sent else 'RECV'}: {xml}",
    "aioxmpp": lambda sent, xml, at: (
        f"DEBUG:aioxmpp.XMLStream:{'SENT' if sent else 'RECV'} {xml.encode()!r}"
    ),
    "@xmpp/debug": lambda sent, xml, at: f"{'OUT' if sent else 'IN'}\n{spread(xml)}",
    "libstrophe": lambda sent, xml, at: (
        f"{'conn' if sent else 'xmpp'} DEBUG {'SENT' if sent else 'RECV'}: {xml}"
    ),
    "Profanity": lambda sent, xml, at: (
        f"{at:%d/%m/%Y %T}: conn: DBG: {'SENT' if sent else 'RECV'}: {xml}"
    ),
    "Prosody": lambda sent, xml, at: f"{at:%b %d %T} c2s55d0e8\tdebug\t{server_word(sent)}: {xml}",
    "ejabberd": lambda sent, xml, at: (
        f"{at:%F %T.%f}+00:00 [debug] <0.618.0>@xmpp_socket:x/2:1 (tcp|<0.618.0>) "
        f"{'Received' if sent else 'Send'} XML on stream = {erlang(xml)}"
    ),
    "log --stanzas": lambda sent, xml, at: f"{at:%FT%T}.{ms(at)}Z {'-->' if sent else '<--'} {xml}",
    "log --stanzas --json": lambda sent, xml, at: json.dumps(
        {"direction": "out" if sent else "in", "xml": xml, "at": f"{at:%FT%T}.{ms(at)}Z"}
    ),
    "arrows": lambda sent, xml, at: f"{'>>>' if sent else '<<<'} {xml}",
    "words": lambda sent, xml, at: f"[bot] {'Sending' if sent else 'Received'}: {xml}",
    "Docker": lambda sent, xml, at: "\n".join(
        json.dumps({"log": f"{line}\n"}) for line in f"{word(sent)}: {xml}".split("\n")
    ),
    "Kubernetes": lambda sent, xml, at: each(
        f"{at:%FT%T}.{ms(at)}000000Z stdout F ", f"{word(sent)}: {xml}"
    ),
    "journald": lambda sent, xml, at: each(f"{at:%b %d %T} host bot[7]: ", f"{word(sent)}: {xml}"),
    "docker compose": lambda sent, xml, at: each("bot-1  | ", f"{word(sent)}: {xml}"),
    "colours": lambda sent, xml, at: f"\x1b[32mDEBUG\x1b[0m {word(sent)}: {xml}\x1b[0m",
    "CRLF": lambda sent, xml, at: f"{word(sent)}: {xml}\r",
}


def ms(at: datetime) -> str:
    return f"{at.microsecond // 1000:03}"


def each(prefix: str, text: str) -> str:
    return "\n".join(f"{prefix}{line}" for line in text.split("\n"))


def written(format_: str, passed: Iterable[Passed]) -> str:
    seconds, lines = BEGIN, []
    for it in passed:
        seconds += it.pause
        at = datetime.fromtimestamp(seconds, UTC)
        lines.append(WRITERS[format_](it.sent, it.xml, at))
    return "\n".join([*lines, ""])
