"""`xmpp-bridge explain`: reads debug logs of a bot, and names what went wrong on its stream."""

import argparse
import sys
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.finding import Severity
from bridge.capture.formats import NO_LOGS, how_to, named_in
from bridge.capture.reader import LogReader
from bridge.capture.stanza import STANZA_TAGS
from bridge.capture.verdict import NO_ERROR, UNKNOWN, verdict
from bridge.commands.exit import FAILURE, SUCCESS, USAGE, UsageError
from bridge.commands.report import captured_page, report_path, write_captured
from bridge.logs import complain, complain_of, write_out
from bridge.text import one_line, quoted
from bridge.views.explain import as_json, lines_of
from bridge.views.output import display_of
from bridge.wire.names import lower_bare

STDIN = "-"

UNDIRECTED = (
    "The log has lines without a mark of direction: who sent these stanzas is known from the "
    "stanzas alone, and the others are not read."
)
"""The end of a verdict that may rest on such lines."""

UNREAD = "in part, or without a direction: write RECV: or SENT: before a bare one"
"""What may keep a stanza from being read."""


def run(parsed: argparse.Namespace) -> int:
    """Read the logs, and show what the rules find."""
    account = lower_bare(parsed.account or "")
    page = captured_page(
        parsed, lambda stream: not account or lower_bare(stream.client.account) in {account, ""}
    )
    capture = Capture(
        command=parsed.command_text or "",
        nickname=parsed.nickname or "",
        observe=page.take if parsed.report else None,
    )
    report = report_path(parsed, parsed.files)
    readers = [_read(name, capture) for name in parsed.files or [STDIN]]
    begin = "".join(reader.begin for reader in readers)
    is_read = any(reader.stanzas for reader in readers)
    if not is_read and not any(each.has_error() for each in capture.streams):
        complain(f"xmpp-bridge: {how_to(begin)}\n{one_line(_nothing_read(capture, begin))}")
        return USAGE
    capture.finish()
    streams = _picked(capture.streams, parsed.account, parsed.nickname)
    if not streams:
        named = _names(capture.streams, parsed.account)
        raise UsageError(
            f"the log has no stream of {_asked(parsed)}; it names "
            f"{', '.join(map(quoted, named[:20])) or 'nobody'}"
        )
    if write_captured(page, capture, streams, report) != SUCCESS:
        return FAILURE
    findings = [finding for examined in streams for finding in examined.findings()]
    conclusion = verdict(findings, capture.holes)
    has_errors = any(each.has_error() for each in streams)
    is_told = any(finding.severity is not Severity.NOTE for finding in findings)
    if not is_told and all(map(_is_unheard, capture.streams)):
        has_received = any(each.stream.client.has_received for each in capture.streams)
        line = named_in(begin)
        if line.startswith("the log names") or (line and not has_received):
            conclusion = f"{conclusion.replace(NO_ERROR, UNKNOWN)} T{line[1:]}."
    if parsed.command_text and not (has_errors or any(each.stream.was_asked for each in streams)):
        begin = quoted(parsed.command_text)
        conclusion += f" No message that begins with {begin} reached the client, other than in the "
        conclusion += "history of a room, which does not count."
    if any(reader.has_undirected for reader in readers):
        conclusion += f" {UNDIRECTED}"
    pieces: Iterable[str]
    if parsed.json:
        pieces = as_json(streams, conclusion, capture.holes)
    else:
        telling = [each for each in streams if parsed.all or each.findings()] or streams[-1:]
        lines = lines_of(telling, display_of(sys.stdout), everything=parsed.all)
        if capture.left_out:
            lines.append(f"{capture.left_out} streams are left out, first those without an error")
        pieces = ["\n".join([*lines, one_line(conclusion)])]
    is_shown = not complain_of(write_out(*pieces))
    if not is_shown or has_errors:
        return FAILURE
    return USAGE if conclusion.startswith(UNKNOWN) else SUCCESS


def _nothing_read(capture: Capture, begin: str) -> str:
    """Return that no stanza could be read, and what the log says instead."""
    part = f" ({capture.holes} {UNREAD})" if capture.holes else ""
    nothing = f"no whole stanza was found whose sender is known{part}"
    nothing += f"; {line}" if (line := named_in(begin)) else ""
    if (failed := capture.failure) is not None:
        nothing += f"; the program failed ({failed.place.words}): {failed.element.text}"
    return nothing


def _read(name: str, capture: Capture) -> LogReader:
    """Read a log; return its reader."""
    try:
        if name == STDIN:
            # Its type does not say so, but stdin is read by a `BufferedReader`.
            return read_log(cast("BufferedReader", sys.stdin.buffer), "stdin", capture)
        with Path(name).open("rb") as file:
            return read_log(file, name, capture)
    except OSError as error:
        raise UsageError(f"{name!r} cannot be read: {error.strerror}") from error


def read_log(file: BufferedReader, name: str, capture: Capture) -> LogReader:
    """Read a log into `capture`; return its reader.

    Raises `UsageError` for a file that is known to be no log.
    """
    reader, begin = LogReader(name), file.peek()
    for mark, what in NO_LOGS.items():
        if begin.startswith(mark):
            raise UsageError(
                f"{name!r} is {what}; explain reads the debug log of the bot's library"
            )
    for captured in reader.read(file):
        capture.take(captured)
    return reader


def _is_unheard(examined: Examined) -> bool:
    """Whether the log has no more than a login that did not succeed.

    Then no stranger's words are in the log. A login's own stanzas have no address.
    """
    stream = examined.stream
    ends = (stream.first, stream.ending.last)
    has_stanzas = any(each is None or _has_address(each.element) for each in ends)
    return not (stream.login.authenticated or stream.client.bound or has_stanzas)


def _has_address(element: Element) -> bool:
    return element.tag in STANZA_TAGS and not {"from", "to"}.isdisjoint(element.attrib)


def _picked(streams: list[Examined], account: str | None, nickname: str | None) -> list[Examined]:
    """Return the streams of an account, and of the clients that are occupants with this nickname.

    An error in a log that names no account at all, or no nickname, may be theirs.
    """
    failed, asked = any(each.has_error() for each in streams), lower_bare(account or "")
    if asked and not (failed and not any(each.stream.client.account for each in streams)):
        streams = [each for each in streams if each.client == asked]
    seats = [(each.client, room) for each in streams for room in each.stream.rooms.by_jid.values()]
    if nickname and not (failed and not any(room.nickname for _, room in seats)):
        clients = {client for client, room in seats if room.is_under(nickname)}
        streams = [each for each in streams if each.client in clients]
    return streams


def _names(streams: list[Examined], account: str | None) -> list[str]:
    """Return the names that the log has: nicknames of the account's streams, or accounts."""
    names = {lower_bare(each.stream.client.account) for each in streams}
    if of_account := _picked(streams, account, None):
        names = {room.nickname for each in of_account for room in each.stream.rooms.by_jid.values()}
    return sorted(names - {""})


def _asked(parsed: argparse.Namespace) -> str:
    return " and ".join(quoted(text) for text in (parsed.account, parsed.nickname) if text)
