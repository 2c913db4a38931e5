"""A finding on a stream, and which finding explains the others. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from bridge.capture.stanza import LogPlace
from bridge.text import one_line


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """One fault on a stream."""

    name: str
    """The name of the rule that found it."""
    severity: Severity
    message: str
    """A sentence on what happened. A stranger's words are `quoted` in it."""
    hint: str
    """A sentence on what to change in the client, or elsewhere."""
    clause: str
    """The clause of the standard, such as `RFC 6120, 8.2.3`."""
    place: LogPlace
    key: str = ""
    """Findings of one rule with the same key are shown once, with their number."""
    about: str = ""
    """The bare JID of a room or another address; or the domain of a stream, empty if unknown."""
    client: str = ""
    """The client on whose stream it was found. Errors of one client explain nothing about
    another."""

    @property
    def cause(self) -> str:
        """The first word of its key, which names the rule's cause of it."""
        return self.key.partition(" ")[0]

    @property
    def sentence(self) -> str:
        """One line on what is wrong, and where."""
        place = f"{self.place.file}:{self.place.line} " if self.place.file else ""
        at = f"({self.place.at}) " if self.place.at else ""
        return one_line(f"{place}{at}{self.name}: {self.message}")

    @property
    def advice(self) -> str:
        """One line on what to do about it, with the standard's clause."""
        return one_line(f"-> {self.hint} ({self.clause})")


def key_of_finding(cause: str, key: str, about: str) -> str:
    """Return the key of findings with this cause."""
    return f"{cause} {key} {about}"


EXPLAINS: Mapping[str, Collection[str]] = {
    "tls": {"login", "ended", "join", "refused"},
    "login": {"ended", "join", "refused"},
    "join": {"refused", "silent", "misplaced", "ended"},
    "removed": {"refused", "silent", "join"},
    "refused": {"ended", "removed"},
    "misplaced": {"refused", "removed", "ended"},
    "ended": {"join", "refused"},
    "period": {"ended", "join", "refused"},
}
"""The findings that an error of each name, or cause, explains if they come later.

The findings have to be the same client's. An error about an address explains only findings about
the same address, or about the stream to the address's server.
"""

ANYTHING = "*"
"""Stands for any address. An error about a stream explains findings about all addresses."""


def explanation(findings: Sequence[Finding]) -> Finding | None:
    """Return the error that explains the most later errors of its client; the earliest of equals.

    `findings` are in the order in which they happened, stream by stream. None if there is no error.
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
            if explained >= most:
                best, most = finding, explained
            later[finding.client, finding.name, finding.about] += 1
            later[finding.client, finding.name, ANYTHING] += 1
    return best


def _explained_by(about: str) -> list[str]:
    """Return the addresses of the findings that an error about this address explains."""
    _, at, host = about.partition("@")
    if not at:
        return [ANYTHING]
    labels = host.split(".")
    return [about, "", *(".".join(labels[number:]) for number in range(len(labels)))]
