"""The verdict on a log: the finding that explains the others, in a sentence. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from bridge.capture.finding import Finding, Severity

SILENT_ENDS = frozenset({"closed", "cut", "dropped", "given-up-on"})
"""The causes of errors that give no reason. The verdict adds warnings and notes to these, too."""

EXPLAINS: Mapping[str, Collection[str]] = {
    "tls": {"login", "ended", "join", "refused"},
    "login": {"ended", "join", "refused"},
    "session": {"ended", "join", "refused"},
    "join": {"refused", "silent", "misplaced", "ended"},
    "removed": {"refused", "silent", "join"},
    "refused": {"ended", "removed"},
    "misplaced": {"refused", "removed", "ended"},
    "ended": {"join", "refused"},
    "period": {"ended", "join", "refused"},
    **dict.fromkeys(SILENT_ENDS, ("refused",)),
}
"""The findings that an error of each name, or cause, explains if they come later.

The findings have to be the same client's. An end that gives no reason explains no refused join: the
client has come back since. An error about an address explains only findings about
the same address, or about the stream to the address's server.
"""

TOLD = frozenset(
    (  # noqa: SIM905 - as a set it would take twelve lines
        "stops-at-tls stops-at-question stops-at-offer stops-in-part stops-at-join doubted "
        "other-error refused-request refused-outside bounced-signal untold excerpt unheard "
        "only-sent only-received died failed renamed not-yet-rejoined roomless complained left "
        "closing"
    ).split()
)
"""The causes of notes that the verdict adds to "No error was found", so that it hides no error."""

BY_PROGRAM = frozenset({"error-to-room", "silent"})
"""The causes of errors that an earlier exception of the program may explain."""

NO_ERROR = "No error was found."

UNKNOWN = "Whether there was an error is not known."
"""The verdict if there is a finding whose cause is in `DOUBTS`."""

STOPS = frozenset({each for each in TOLD if each.startswith("stops-")})
"""The log ends before the client has a session, or before a room has answered it."""

DOUBTS = STOPS | {"doubted", "untold", "excerpt", "died", "complained", "only-sent", "closing"}
"""An entry may be a stranger's words that the program printed; the log does not tell why a request
was refused, or has little but such a request, or has nothing that one side said; or the program
failed or logged an error, and nothing follows."""

UNDONE = frozenset({"no-tls", "left-at-tls", "no-mechanism", "given-up"})
"""The causes of errors that say what a client did not do: its program may have ended before."""

ANYTHING = "*"
"""Stands for any address. An error about a stream explains findings about all addresses."""


def explanation(findings: Sequence[Finding]) -> Finding | None:
    """Return the error that explains the most later errors of its client; the earliest of equals.

    Of two equal ends, one that gives a reason comes before one that gives none. `findings` are in
    the order in which they happened, stream by stream. None if there is no error.
    """
    later: Counter[tuple[str, str, str]] = Counter()
    best, most = None, -1
    for finding in reversed(findings):
        if finding.severity is Severity.ERROR:
            explained = sum(
                later[finding.client, name, about]
                for name in EXPLAINS.get(finding.cause) or EXPLAINS.get(finding.name, ())
                for about in _explained_by(finding.about)
            )
            yields = best is not None and best.client == finding.client and _yields(finding, best)
            if explained > most or (explained == most and not yields):
                best, most = finding, explained
            later[finding.client, finding.name, finding.about] += 1
            later[finding.client, finding.name, ANYTHING] += 1
    if best is not None and best.name == "ended" and best.cause != "period":
        # The client has come back since: what it lacks now counts.
        out = (it for it in findings if it.cause == "not-rejoined" and it.client == best.client)
        return next(out, best)
    return best


def _yields(finding: Finding, later: Finding) -> bool:
    """Whether a later error of the client tells more than this one."""
    if finding.cause == "no-answer":
        return later.cause != "no-answer"
    return finding.cause in SILENT_ENDS and later.name in {"ended", "join"}


def _explained_by(about: str) -> list[str]:
    """Return the addresses of the findings that an error about this address explains."""
    _, at, host = about.partition("@")
    if not at:
        return [ANYTHING]
    labels = host.split(".")
    return [about, "", *(".".join(labels[number:]) for number in range(len(labels)))]


def verdict(findings: Iterable[Finding], holes: int = 0) -> str:
    """Return in a sentence what is wrong: the error that explains its client's other errors.

    A further sentence follows if other clients have errors too, and another if there are holes:
    stanzas of which the log has only a part.
    """
    findings = list(findings)
    cause = explanation(findings)
    words = NO_ERROR if DOUBTS.isdisjoint(it.cause for it in findings) else UNKNOWN
    if cause is not None:
        words = f"{_where(cause)}: {cause.message} {cause.hint}"
        clients = {each.client for each in findings if each.severity is Severity.ERROR}
        if others := len(clients) - 1:
            words += f" Other clients with errors: {others}."
        exits = (it for it in findings if it.cause == "exited" and it.client == cause.client)
        if cause.name in {"tls", "login"} and (end := next(exits, None)):
            why = f"{end.message} {end.hint}"  # which came first is not known
            words = f"{_where(end)}: {why} {words}" if cause.cause in UNDONE else f"{words} {why}"
        is_silent = cause.cause in SILENT_ENDS or cause.key.startswith("error undefined-condition ")
        is_own = cause.cause in BY_PROGRAM
        theirs = [each for each in findings if each.client == cause.client]
        also = {"left", "failed"} if is_own else {"left"}
        findings = [each for each in theirs if is_silent or each.cause in also]
    if warnings := [each for each in findings if each.severity is Severity.WARNING]:
        first = next((each for each in warnings if each.name in EXPLAINS), warnings[0])
        words += f" A warning: {_where(first)}: {first.message} {first.hint}"
        if others := len(warnings) - 1:
            words += f" Other warnings: {others}."
    aside = {each.cause: each for each in reversed(findings) if each.cause in TOLD}
    for kind, note in reversed(aside.items()):
        others = sum(each.cause == kind for each in findings) - 1
        more = f" Others of that kind: {others}." if others else ""
        words += f" {_where(note)}: {note.message}{more}"
    if holes:
        words += (
            f" Stanzas that the log has only in part: {holes}; an answer may be among them, so no "
            "answer is said to be missing there."
        )
    return words


def _where(finding: Finding) -> str:
    place = finding.place
    return f"{place.file}:{place.line}" if place.file else place.at
