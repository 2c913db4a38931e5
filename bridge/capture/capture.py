"""Follows the streams of the logs that are read, and what is found on each. Pure, within bounds."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from itertools import chain, pairwise
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause
from bridge.capture.examined import Examined
from bridge.capture.finding import Finding, Outcome, recovered
from bridge.capture.sorting import begins, claim, whose
from bridge.capture.stanza import EXITED, FAILURE, HOLE, MAX_EXCERPT, PAUSE, LogPlace, Stanza
from bridge.capture.stream import Stream
from bridge.capture.verdict import SILENT_ENDS
from bridge.wire.names import SM, lower_bare

MAX_STREAMS = 1_000
"""We keep the findings of at most so many streams. With more, we drop the oldest that we no longer
follow, first those without an error."""

RECOVERABLE = frozenset({"cut", "crashed", "dropped", "given-up-on"})
"""The causes of ends after which a client may resume its session."""

MAX_OPEN = 100
"""We follow at most so many streams at once. With more, we give up a stream that has ended, else a
stream that never got in, else the stream that was silent for longest."""

REFUSALS = frozenset(
    {"refused-request", "refused-outside", "bounced-signal"}
    | {"bind-refused", "unbound", "presence-bounced"}
)
"""The causes of notes and warnings on what was refused to a client that may not need it."""

MIN_CUTS = 3
"""If so many streams of a client end after the same time, a finding says so."""

PERIOD_SPREAD = 0.1
"""The lengths of these streams may differ by at most this fraction of the shortest."""


class Capture:
    """The streams and findings of all logs that were read."""

    def __init__(
        self,
        *,
        command: str = "",
        nickname: str = "",
        observe: Callable[[Examined, Stanza], None] | None = None,
        on_new: Callable[[Finding], None] = lambda finding: None,
    ) -> None:
        """Call `observe` with each stanza once its stream has taken it.

        Call `on_new` with the first finding of each key on a stream.
        """
        self._observe = observe
        self._on_new = on_new
        self.streams: list[Examined] = []
        """The streams, in the order in which they began."""
        self.failure: Stanza | None = None
        """The latest failure of a program while no stream was under way."""
        self.left_out = 0
        """How many streams we dropped, because there were more than `MAX_STREAMS`."""
        self.holes = 0
        """How many stanzas the logs have only in part."""
        self._hole: Stanza | None = None
        """A hole that came while no stream was under way: it may belong to the next stream."""
        self._command = command
        self._nickname = nickname
        self._taken = 0
        """How many stanzas were taken."""
        self._over: dict[bool, deque[Examined]] = {False: deque(), True: deque()}
        """The streams that we no longer follow, without and with an error, oldest first."""
        self._open: dict[str, list[Examined]] = {}
        """The streams under way, by session; the stream of the latest stanza comes last."""

    def take(self, stanza: Stanza) -> None:
        """Take a stanza, and let the rules look at it."""
        if self._takes_apart(stanza):
            return
        session = stanza.session
        streams = self._open.get(session, [])
        if not streams:
            examined = self._begin(session)
        else:
            owners = whose(stanza, streams)
            if len(owners) != 1:
                for owner in owners or streams:
                    owner.stream.take_of_any(stanza)
                if self._observe is not None:
                    self._observe(streams[-1], stanza)
                return
            (examined,) = owners
            claim(stanza, examined.stream, streams)
            examined.cut = None
            if begins(stanza, examined.stream):
                examined.add(examined.stream.give_way(stanza))
                examined = self._begin(session)
            elif examined is not streams[-1]:
                streams.remove(examined)
                streams.append(examined)
        was_bound = examined.stream.client.bound
        self._take(examined, stanza)
        if examined.stream.client.bound and not was_bound:
            self._succeed(session, examined, stanza)

    def pause(self, seconds: float, sessions: Collection[str] | None = None) -> None:
        """Let the rules find what is overdue by now, in all sessions or in `sessions` alone."""
        pause = Stanza(False, Element(PAUSE), LogPlace("", 0, ""), seconds)
        for session, streams in self._open.items():
            for examined in streams if sessions is None or session in sessions else ():
                if not examined.stream.client.ended:
                    examined.take(pause)

    def finish(self) -> None:
        """Look at all streams together: a client's streams may all end after the same time.

        The log may also have one direction only.
        """
        accounts = defaultdict[str, set[str]](set)
        by_client = defaultdict[str, list[Examined]](list)
        for examined in self.streams:
            if not examined.is_over:
                examined.add(examined.stream.conclusion())
                if examined.stream.ending.failed and (last := examined.stream.ending.last):
                    examined.add([cause("died", last.place)])
            examined.add_cut()
            if account := lower_bare(examined.stream.client.account):
                accounts[examined.home].add(account)
        for examined in self.streams:
            # If nothing has passed, tap alone knows of the stream, and has one client.
            known = (
                accounts[examined.home] if examined.stream.first else {*chain(*accounts.values())}
            )
            examined.only_account = next(iter(known)) if len(known) == 1 else ""
            if examined.seconds is not None:
                by_client[examined.client].append(examined)
        for former, after in pairwise(self.streams):
            former.add(_answered(former, after))
        clients = [each.stream.client for each in self.streams]
        has_sent = any(each.has_sent for each in clients)
        is_one_sided = has_sent != any(each.has_received for each in clients)
        is_one_sided &= has_sent or not self.holes  # what was received in part may be a refusal
        if is_one_sided and (first := self.streams[0].stream.first):
            name = "only-sent" if has_sent else "only-received"
            self.streams[0].add([cause(name, first.place)])
        if self._taken <= MAX_EXCERPT and not any(each.is_complete for each in clients):
            for each in self.streams:
                refused = [it for it in each.findings() if it.cause in REFUSALS]
                each.add(cause("excerpt", it.place) for it in refused[:1])
        for streams in by_client.values():
            ended = [each for each in streams if any(map(_may_be_timeout, each.findings()))]
            lengths = sorted(each.seconds or 0.0 for each in ended)
            if len(ended) < MIN_CUTS or lengths[-1] > (1 + PERIOD_SPREAD) * lengths[0]:
                continue
            place = next(filter(_may_be_timeout, ended[0].findings())).place
            seconds = sum(lengths) / len(lengths)
            if all(each.stream.ending.heard for each in ended):
                continue  # the messages may have ended the program
            said = [each.stream.ending.ignored for each in ended]
            why = said[-1] if all(said) else ""
            ended[0].add([cause("period", place, count=len(ended), seconds=seconds, ignored=why)])

    def _takes_apart(self, stanza: Stanza) -> bool:
        """Take a failure, a pause, or a hole in no single stream; return whether it was such."""
        session, is_hole = stanza.session, stanza.element.tag == HOLE
        if stanza.element.tag not in {FAILURE, PAUSE, EXITED, HOLE}:
            return False
        every = [each for streams in self._open.values() for each in streams]
        if stanza.element.tag == FAILURE:
            self.failure = stanza if stanza.element.text and not every else self.failure
            going = [each for each in every if each.cut is None]
            if len(going) == 1:  # with several, it is not known whose program failed
                going[0].add(going[0].stream.fail(stanza))
            for error in () if every else stanza.element:  # of a stream that the log does not have
                self.take(stanza._replace(element=error))
            return True
        if stanza.element.tag in {PAUSE, EXITED}:
            paused = self._open.get(session, ())
            for examined in paused if stanza.element.tag == PAUSE else self.streams[-1:]:
                examined.take(stanza)
            return True
        if is_hole and not stanza.element.text:
            self.holes += 1
        if is_hole and not session and (every or not stanza.element.text):
            self._hole = None if every else stanza
            for examined in every:
                self._take(examined, stanza)
            return True
        return False

    def _take(self, examined: Examined, stanza: Stanza) -> None:
        self._taken += 1
        examined.latest = self._taken
        examined.take(stanza)
        if self._observe is not None:
            self._observe(examined, stanza)

    def _begin(self, session: str) -> Examined:
        stream = Stream(command=self._command, nickname=self._nickname)
        examined = Examined(stream, session, self._on_new)
        examined.stream.ending.last, self._hole = self._hole, None
        if self.failure is not None and len(self.failure.element) == 0:
            examined.add(examined.stream.fail(self.failure))
            self.failure = None
        self.streams.append(examined)
        # Streams that have ended, or never got in, get no more stanzas.
        for other in [*self._open.get(session, ())]:
            if other.stream.client.ended or not other.stream.client.bound:
                self._close(session, other)
        self._open.setdefault(session, []).append(examined)
        if sum(map(len, self._open.values())) > MAX_OPEN:
            others = [(key, it) for key in self._open for it in self._open[key] if it != examined]
            self._close(*min(others, key=_use))
        if len(self.streams) > MAX_STREAMS:
            self.streams.remove((self._over[False] or self._over[True]).popleft())
            self.left_out += 1
        return examined

    def _close(self, session: str, examined: Examined) -> None:
        """Stop following a stream."""
        examined.add(examined.stream.conclusion())
        examined.stream.forget()
        examined.add_cut()
        examined.is_over = True
        self._over[examined.has_error()].append(examined)
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
        if resumed:
            self._resume(after.stream, resumed)
        client = after.stream.client
        for examined in [*self._open[session]]:
            former = examined.stream
            if examined is after:
                continue
            if lower_bare(former.client.account) != lower_bare(client.account):
                continue
            if not resumed or former.login.resumption_id != resumed:
                examined.cut = examined.cut or former.cut(stanza)
            if examined.cut is None or former.client.account == client.account:
                self._close(session, examined)
        if not resumed and (broken := self._before(after)) is not None:
            after.stream.succeed(broken.stream, stanza)

    def _before(self, after: Examined) -> Examined | None:
        """Return the former stream of the same client, if it broke, or the server ended it."""
        account = lower_bare(after.stream.client.account)
        for examined in reversed(self.streams[: self.streams.index(after)]):
            client = examined.stream.client
            if client.bound and lower_bare(client.account) == account:
                is_broken = examined.cut or any(it.name == "ended" for it in examined.findings())
                return examined if is_broken else None
        return None

    def _resume(self, stream: Stream, resumption_id: str) -> None:
        """Give a stream the state of the latest one whose session it resumes, whatever ended it."""
        for examined in reversed(self.streams):
            former = examined.stream
            if former.login.resumption_id == resumption_id and former is not stream:
                stream.client.account = former.client.account
                stream.rooms.by_jid.update(former.rooms.by_jid)
                stream.login.resumption_id = resumption_id
                ends = [each for each in examined.findings() if each.cause in RECOVERABLE]
                examined.add(recovered(ends, " The client resumed its session after that."))
                return


def _answered(former: Examined, after: Examined) -> Iterator[Outcome]:
    """Take the error back that a server never answered, if it answers the same client's next."""
    host, client = former.stream.client.host, after.stream.client
    if client.has_received and former.client == after.client and host == client.host:
        silences = [it for it in former.findings() if it.cause == "no-answer"]
        yield from recovered(silences, " It answered the next.")


def _may_be_timeout(finding: Finding) -> bool:
    """Whether a timeout may have ended the stream: of its length, or of its silence."""
    return finding.cause in SILENT_ENDS or finding.key.startswith("error connection-timeout ")


def _use(followed: tuple[str, Examined]) -> tuple[bool, bool, int]:
    """Return the rank of a stream: the stream of the lowest is given up first."""
    client = followed[1].stream.client
    return not client.ended, client.bound, followed[1].latest
