"""One stream of a log, and the findings on it. Pure, within bounds."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bridge.capture.finding import Disproof, Finding, Outcome, Severity
from bridge.capture.stanza import Stanza
from bridge.capture.stream import Stream
from bridge.wire.names import lower_bare

MAX_FINDINGS = 16
"""We keep at most so many different findings of a stream. A more severe finding replaces another.
"""


class _Kept(NamedTuple):
    """The findings with one key."""

    first: Finding
    newest: Finding
    times: int


class Examined:
    """One stream, and the findings on it."""

    def __init__(
        self, stream: Stream, session: str, on_new: Callable[[Finding], None] = lambda finding: None
    ) -> None:
        """Call `on_new` with the first finding of each key."""
        self.stream = stream
        self._on_new = on_new
        self.session = session
        """The name by which the log tells this stream from others; empty if it does not."""
        self.only_account = ""
        """The account of its home, if all streams there that have an account have the same one."""
        self.cut: Finding | None = None
        """The finding that the stream broke, since another resource of its account logged in. It
        counts unless the stream goes on."""
        self.latest = 0
        """How many stanzas of all streams had passed when this stream's latest came."""
        self.is_over = False
        """Whether we no longer follow the stream."""
        self._kept: dict[str, _Kept] = {}
        """The findings, by their keys."""

    def take(self, stanza: Stanza) -> None:
        """Take a stanza, and collect what it shows to be wrong."""
        self.add(self.stream.take(stanza))

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Add findings; count again any that were added before. Take back what is disproved."""
        for finding in outcomes:
            if isinstance(finding, Disproof):
                self._withdraw(finding)
            elif kept := self._kept.get(finding.key):
                self._kept[finding.key] = _Kept(kept.first, finding, kept.times + 1)
            elif len(self._kept) < MAX_FINDINGS or self._drop_for(finding):
                self._kept[finding.key] = _Kept(finding, finding, 1)
                self._on_new(finding)

    def add_cut(self) -> None:
        """Add the finding `cut`, if there is one: the stream does not go on."""
        if self.cut is not None:
            self.add([self.cut])
            self.cut = None

    def _withdraw(self, disproof: Disproof) -> None:
        """Take back one finding with this key, or all that begin with it."""
        key, kept = disproof.key, self._kept.get(disproof.key)
        if disproof.is_of_all:
            rest = {each: it for each, it in self._kept.items() if not each.startswith(key)}
            self._kept = rest
        elif kept and kept.times > 1:
            self._kept[key] = _Kept(kept.newest, kept.newest, kept.times - 1)
        else:
            self._kept.pop(key, None)

    def _drop_for(self, finding: Finding) -> bool:
        """Drop a finding that is less severe than `finding`; return whether there was one."""
        for severity in [*Severity][: [*Severity].index(finding.severity) : -1]:
            for key, kept in self._kept.items():
                if kept.first.severity is severity:
                    del self._kept[key]
                    return True
        return False

    def findings(self) -> list[Finding]:
        """Return the findings in the order of the log, each with its number of occurrences."""
        client = self.client
        result = []
        for first, newest, times in self._kept.values():
            more = f" ({times} times in all.)" if times > 1 else ""
            finding = first._replace(message=f"{first.message}{more}", newest=newest.place)
            result.append(finding._replace(client=client))
        return sorted(result, key=lambda finding: finding.place.line)

    @property
    def home(self) -> str:
        """The file and the session that the stream is in."""
        return f"{self.stream.first.place.file if self.stream.first else ''} {self.session}"

    @property
    def client(self) -> str:
        """The client whose stream it is: an account, or the stream's home if the log names none."""
        return lower_bare(self.stream.client.account) or self.only_account or self.home

    @property
    def seconds(self) -> float | None:
        """How long the stream lasted; None if the log has no times."""
        first, last = self.stream.first, self.stream.ending.last
        if first is None or last is None or first.seconds is None or last.seconds is None:
            return None
        return last.seconds - first.seconds

    def has_error(self) -> bool:
        """Whether any finding is an error."""
        return any(each.first.severity is Severity.ERROR for each in self._kept.values())
