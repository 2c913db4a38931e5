"""A finding on a stream. Pure."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from bridge.capture.stanza import LogPlace
from bridge.text import one_line


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

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
    newest: LogPlace | None = None
    """Where it was found last, if more than once."""
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


class Disproof(NamedTuple):
    """What takes findings back, since the log goes on to show that they are wrong."""

    key: str
    is_of_all: bool = False
    """Whether it takes back all findings whose keys begin with this key, and not just one."""


Outcome: TypeAlias = Finding | Disproof
"""What a rule makes of a stanza."""


def recovered(findings: Iterable[Finding], words: str) -> Iterator[Outcome]:
    """Make notes of errors that the client got over soon by itself, and say so in `words`."""
    for finding in findings:
        yield Disproof(finding.key)
        yield finding._replace(severity=Severity.NOTE, message=finding.message + words)
