"""Tells the streams of a log apart, and collects what the rules find on each. Pure, within bounds.

Many logs do not name the stream of a stanza. Then a stanza belongs to the client whose account the
stanza names, or else to the client of the stanza before.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from bridge.capture.causes import cause
from bridge.capture.connecting import cut
from bridge.capture.finding import Finding, Severity, explanation
from bridge.capture.rules import findings_of
from bridge.capture.stanza import HOLE, MAX_TEXT, Stanza
from bridge.capture.stream import RoomState, Stream
from bridge.capture.taking import take, take_of_any
from bridge.wire.names import ACK, ACK_REQUEST, FEATURES, HEADER, JOIN, SM, codes_of, lower_bare

MAX_STREAMS = 1_000
"""We keep the findings of at most so many streams. With more, we drop the oldest without an
error."""

MAX_OPEN = 100
"""We follow at most so many streams at once. With more, we give up the one that began first."""

MAX_FINDINGS = 16
"""We keep at most so many different findings of a stream, and errors rather than others."""


MIN_CUTS = 3
"""If so many streams of a client end after the same time, a finding says so."""

PERIOD_SPREAD = 0.1
"""The lengths of these streams may differ by at most this fraction of the shortest."""


class Examined:
    """One stream, and the findings on it."""

    def __init__(self, stream: Stream, session: str) -> None:
        self.stream = stream
        self.session = session
        """The name by which the log tells this stream from others; empty if it does not."""
        self.only_account = ""
        """The account of its home, if all streams there that have an account have the same one."""
        self.cut: Finding | None = None
        """The finding that the stream broke, since another resource of its account logged in. It
        counts unless the stream goes on."""
        self._findings: dict[tuple[str, str], Finding] = {}
        self._newest: dict[tuple[str, str], Finding] = {}
        self._times: dict[tuple[str, str], int] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings; count again any that were added before."""
        for finding in findings:
            key = finding.name, finding.key
            if key in self._findings:
                self._times[key] += 1
                self._newest[key] = finding
            elif len(self._findings) < MAX_FINDINGS or self._drop_for(finding):
                self._findings[key], self._times[key] = finding, 1

    def withdraw(self, wrong: str) -> None:
        """Take one finding with the key `wrong` back, since the log disproves it."""
        for key in [key for key in self._findings if key[1] == wrong]:
            self._times[key] -= 1
            if self._times[key]:
                self._findings[key] = self._newest[key]
            else:
                del self._findings[key]

    def add_cut(self) -> None:
        """Add the finding `cut`, if there is one: the stream does not go on."""
        if self.cut is not None:
            self.add([self.cut])
            self.cut = None

    def _drop_for(self, finding: Finding) -> bool:
        """If `finding` is an error, drop one that is none; return whether one was dropped."""
        others = (key for key, kept in self._findings.items() if kept.severity != Severity.ERROR)
        key = next(others, None) if finding.severity is Severity.ERROR else None
        if key is not None:
            del self._findings[key]
        return key is not None

    def findings(self) -> list[Finding]:
        """Return the findings in the order of the log, each with its number of occurrences."""
        client = self.client
        result = []
        for key, finding in self._findings.items():
            if (times := self._times[key]) > 1:
                finding = finding._replace(message=f"{finding.message} ({times} times in all.)")
            result.append(finding._replace(client=client))
        return sorted(result, key=lambda finding: finding.place.line)

    @property
    def home(self) -> str:
        """The file and the session that the stream is in."""
        return f"{self.stream.first.place.file if self.stream.first else ''} {self.session}"

    @property
    def client(self) -> str:
        """The client whose stream it is: an account, or the stream's home if the log names none."""
        return lower_bare(self.stream.account) or self.only_account or self.home

    @property
    def seconds(self) -> float | None:
        """How long the stream lasted; None if the log has no times."""
        first, last = self.stream.first, self.stream.last
        if first is None or last is None or first.seconds is None or last.seconds is None:
            return None
        return last.seconds - first.seconds

    def has_error(self) -> bool:
        """Whether any finding is an error."""
        return any(each.severity is Severity.ERROR for each in self._findings.values())


class Capture:
    """The streams and findings of all logs that were read."""

    def __init__(
        self,
        *,
        command: str = "",
        nickname: str = "",
        observe: Callable[[Examined, Stanza], None] | None = None,
    ) -> None:
        """Call `observe` with each stanza once its stream has taken it."""
        self._observe = observe
        self.streams: list[Examined] = []
        """The streams, in the order in which they began."""
        self.left_out = 0
        """How many streams we dropped, because there were more than `MAX_STREAMS`."""
        self.holes = 0
        """How many stanzas the logs have only in part."""
        self._command = command
        self._nickname = nickname
        self._open: dict[str, list[Examined]] = {}
        """The streams under way, by session; the stream of the latest stanza comes last."""

    def take(self, stanza: Stanza) -> None:
        """Take a stanza, and let the rules look at it."""
        session = stanza.session
        is_hole = stanza.element.tag == HOLE
        if is_hole and not stanza.element.text:
            self.holes += 1
        if is_hole and not session:
            for streams in self._open.values():
                for examined in streams:
                    self._take(examined, stanza)
            return
        streams = self._open.get(session, [])
        if not streams:
            examined = self._begin(session)
        else:
            owners = _whose(stanza, streams)
            if len(owners) != 1:
                for owner in owners or streams:
                    take_of_any(owner.stream, stanza)
                if self._observe is not None:
                    self._observe(streams[-1], stanza)
                return
            (examined,) = owners
            _claim(stanza, examined.stream, streams)
            examined.cut = None
            if _begins(stanza, examined.stream):
                examined.add(findings_of(examined.stream, stanza))
                examined = self._begin(session)
            elif examined is not streams[-1]:
                streams.remove(examined)
                streams.append(examined)
        stream = examined.stream
        was_bound = stream.bound
        examined.add(findings_of(stream, stanza))
        self._take(examined, stanza)
        if stream.bound and not was_bound:
            self._succeed(session, examined, stanza)

    def finish(self) -> None:
        """Look at all streams together: a client's streams may all end after the same time."""
        accounts = defaultdict[str, set[str]](set)
        by_client = defaultdict[str, list[Examined]](list)
        for examined in self.streams:
            examined.add_cut()
            if account := lower_bare(examined.stream.account):
                accounts[examined.home].add(account)
        for examined in self.streams:
            known = accounts[examined.home]
            examined.only_account = next(iter(known)) if len(known) == 1 else ""
            if examined.seconds is not None:
                by_client[examined.client].append(examined)
        for streams in by_client.values():
            ended = [each for each in streams if any(f.name == "ended" for f in each.findings())]
            lengths = [each.seconds or 0.0 for each in ended]
            if len(ended) < MIN_CUTS or max(lengths) - min(lengths) > PERIOD_SPREAD * min(lengths):
                continue
            place = next(each.place for each in ended[0].findings() if each.name == "ended")
            seconds = sum(lengths) / len(lengths)
            ended[0].add([cause("period", place, count=len(ended), seconds=seconds)])

    def _take(self, examined: Examined, stanza: Stanza) -> None:
        take(examined.stream, stanza)
        for wrong in examined.stream.disproved:
            examined.withdraw(wrong)
        if self._observe is not None:
            self._observe(examined, stanza)

    def _begin(self, session: str) -> Examined:
        examined = Examined(Stream(command=self._command, nickname=self._nickname), session)
        self.streams.append(examined)
        # Streams that have ended, or never got in, get no more stanzas.
        for other in [*self._open.get(session, ())]:
            if other.stream.ended or not other.stream.bound:
                self._close(session, other)
        self._open.setdefault(session, []).append(examined)
        if sum(map(len, self._open.values())) > MAX_OPEN:
            oldest = next(iter(self._open))
            self._close(oldest, self._open[oldest][0])
        if len(self.streams) > MAX_STREAMS:
            healthy = (each for each in self.streams[:-1] if not each.has_error())
            self.streams.remove(next(healthy, self.streams[0]))
            self.left_out += 1
        return examined

    def _close(self, session: str, examined: Examined) -> None:
        """Stop following a stream."""
        examined.stream.forget()
        examined.add_cut()
        self._open[session].remove(examined)
        if not self._open[session]:
            del self._open[session]

    def _succeed(self, session: str, after: Examined, stanza: Stanza) -> None:
        """Find how the account's former streams ended; streams of other accounts go on.

        If a stream's session was resumed, the stream was only interrupted: the client is still in
        its rooms.
        """
        resumed = next(
            (each.get("previd") for each in stanza.element.iter(f"{{{SM}}}resumed")), None
        )
        stream = after.stream
        if resumed:
            self._resume(stream, resumed)
        for examined in [*self._open[session]]:
            former = examined.stream
            if examined is after:
                continue
            if lower_bare(former.account) != lower_bare(stream.account):
                continue
            if not resumed or former.resumption_id != resumed:
                examined.cut = examined.cut or next(cut(former, stanza), None)
            if examined.cut is None or former.account == stream.account:
                self._close(session, examined)

    def _resume(self, stream: Stream, resumption_id: str) -> None:
        """Give a stream the state of the latest one whose session it resumes, whatever ended it."""
        for examined in reversed(self.streams):
            former = examined.stream
            if former.resumption_id == resumption_id and former is not stream:
                stream.account = former.account
                stream.rooms.update(former.rooms)
                stream.resumption_id = resumption_id
                return


def _begins(stanza: Stanza, stream: Stream) -> bool:
    """Whether a stanza begins a new stream, and so does not belong to `stream`."""
    if stanza.element.tag == HEADER and (stanza.sent or not stream.has_own_header):
        was_used = stream.count > 0 if stanza.sent else stream.tried_login
        return was_used and not stream.restarting
    is_offer = stanza.element.tag == FEATURES and not stanza.sent
    return is_offer and stream.authenticated and not stream.restarting and not stream.headers


def _claim(stanza: Stanza, stream: Stream, streams: list[Examined]) -> None:
    """Give a stream the room that the stanza is about, and for which another seemed to ask."""
    element = stanza.element
    jid, _, nickname = element.get("from", "").partition("/")
    if stanza.sent or element.tag != "presence" or len(streams) == 1:
        return
    if not (element.get("type") == "error" or 110 in codes_of(element)):
        return
    own = stream.room(jid)
    for other in (each.stream for each in streams if each.stream is not stream):
        asked = other.room(jid)
        if asked and asked.state is RoomState.ASKED and asked.nickname == nickname:
            if not own:
                stream.rooms[asked.jid] = other.rooms.pop(asked.jid)
            elif own.nickname != nickname:
                stream.rooms[own.jid], other.rooms[own.jid] = asked, own
            return


def _whose(stanza: Stanza, streams: list[Examined]) -> list[Examined]:
    """Return the streams of a session that a stanza may belong to.

    An address of the client in the stanza names one of them. Without such an address, a received
    stanza belongs to the latest stream, unless only other streams are in its room. A sent stanza
    belongs to the streams that can have sent it.
    """
    latest = streams[-1]
    if len(streams) == 1 or stanza.element.tag == HEADER:
        return [latest]
    element = stanza.element
    named = element.get("from" if stanza.sent else "to", "")
    if named:
        exact = [each for each in streams if each.stream.account.lower() == named.lower()]
        resources = [
            each for each in streams if lower_bare(each.stream.account) == lower_bare(named)
        ]
        return [(exact or _alive(resources) or streams)[-1]]
    if not latest.stream.bound:
        return [latest]
    alive = _alive(streams) or [latest]
    if not stanza.sent and element.tag != ACK:
        inside = [each for each in alive if each.stream.room(element.get("from", ""))]
        return [inside[-1] if inside and latest not in inside else latest]
    match element.tag:
        case "message":
            return _in_room(element.get("to", ""), alive)
        case "presence" if to := element.get("to"):
            nickname, asks = to.partition("/")[2], element.find(JOIN) is not None
            rooms = [(each, each.stream.room(to)) for each in alive]
            named_so = [each for each, room in rooms if room and room.nickname == nickname]
            # A client without a seat asks for one. A client with a seat shows itself in it, or
            # leaves.
            fitting = [each for each, room in rooms if asks != (room is not None and room.is_taken)]
            return [(named_so or fitting or streams)[-1]]
        case "iq":
            asked = "asks", element.get("id", "")[:MAX_TEXT]
            return [each for each in alive if asked in {key[:2] for key in each.stream.waiting}]
    return alive if element.tag in {ACK_REQUEST, ACK} else [latest]


def _in_room(jid: str, streams: list[Examined]) -> list[Examined]:
    """Return the streams that may have sent a message to a room: those inside, or else asking."""
    rooms = [(each, each.stream.room(jid)) for each in streams]
    inside = [each for each, room in rooms if room and room.state is RoomState.INSIDE]
    return inside or [each for each, room in rooms if room] or streams


def _alive(streams: Iterable[Examined]) -> list[Examined]:
    """Return the streams that do not seem to have been ended by another login."""
    return [each for each in streams if each.cut is None]


def verdict(findings: Iterable[Finding], holes: int = 0) -> str:
    """Return in a sentence what is wrong: the error that explains its client's other errors.

    A further sentence follows if other clients have errors too, and another if there are holes:
    stanzas of which the log has only a part.
    """
    findings = list(findings)
    cause = explanation(findings)
    warnings = [finding for finding in findings if finding.severity is Severity.WARNING]
    words = "No error was found."
    if cause is not None:
        where = f"{cause.place.file}:{cause.place.line}" if cause.place.file else cause.place.at
        words = f"{where}: {cause.message} {cause.hint}"
        clients = {each.client for each in findings if each.severity is Severity.ERROR}
        if others := len(clients) - 1:
            words += f" Other clients with errors: {others}."
    elif warnings:
        words += f" Warnings: {len(warnings)}."
    if holes:
        words += (
            f" Stanzas of which the log has only a part: {holes}; what should have come before "
            "them, and did not, is not named."
        )
    return words
