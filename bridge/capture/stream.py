"""One client's stream: what is known of it, and what each stanza shows to be wrong. Pure.

A stanza passes once through each of the four concepts: how the client gets its session (`login`),
its `rooms`, its `requests`, and its `talk`. Each has a small state within bounds, and its own
rules. A rule sees the state of its concept before the stanza at hand is taken in. Rules look at
conditions and namespaces, never at the wording of one server.
"""

from collections.abc import Iterator

from bridge.capture.causes import cause
from bridge.capture.client import Entity
from bridge.capture.ending import Ending, cut, ignored, late, unanswered
from bridge.capture.finding import Finding, Outcome
from bridge.capture.login import LoginState, given_up, given_up_bind
from bridge.capture.requests import Requests
from bridge.capture.rooms import Rooms
from bridge.capture.stanza import (
    DISCONNECTED,
    EXITED,
    FOOTER,
    HOLE,
    MAX_EXCERPT,
    PAUSE,
    SAID,
    STANZA_TAGS,
    Stanza,
    outline,
)
from bridge.capture.talk import Talk
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.names import COMPRESS, FEATURES, HEADER, SASL, STREAM_ERROR, TLS, local, split


class Stream:
    """One stream of a client."""

    def __init__(self, *, command: str = "", nickname: str = "") -> None:
        self.client = Entity()
        self.login = LoginState()
        self.rooms = Rooms()
        self.requests = Requests()
        self.talk = Talk(command, nickname)
        self.ending = Ending()
        self.first: Stanza | None = None
        """The `outline` of the first stanza; `ending` has the last."""
        self.was_asked = False
        """At the end: whether a message asked the client for an answer."""
        self.holes = 0
        """How many stanzas, of this stream or between its own, the log has only in part."""

    def take(self, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        client = self.client
        if stanza.element.tag == PAUSE:
            yield from self._late(stanza, client.count)
            yield from late(self.ending, stanza)
            return
        if stanza.element.tag == EXITED:
            yield self.talk.exited(client, stanza)
            return
        client.count += 1
        yield from self._late(stanza, client.count)
        if stanza.element.tag != HOLE:
            client.has_sent = client.has_sent or stanza.sent
            client.has_received = client.has_received or not stanza.sent
        if _is_partial(stanza):
            self.holes += stanza.element.tag == HOLE and not stanza.element.text
            if line := stanza.element.get(SAID):
                yield cause("doubted", stanza.place, line=line)
            self._lose()
        else:
            yield from self.login.take(client, stanza)
            yield from self.rooms.take(client, stanza)
            yield from self.requests.take(client, self.rooms, stanza)
            yield from self.talk.take(client, self.rooms, stanza)
        if stanza.element.tag in {FOOTER, STREAM_ERROR}:
            self.ending.ignored = ignored(self.requests.owed(client), stanza)
        yield from self.ending.take(client, self.login, stanza)
        self.first = self.first or outline(stanza)

    def fail(self, failure: Stanza) -> Iterator[Outcome]:
        """Find on which message the program failed, or note that it failed, or logged an error.

        If the exception passes an error of the server on, that error counts, unless the log has it.
        """
        if (error := next(iter(failure.element), None)) is not None:
            is_known = self.login.refusals or self.login.authenticated
            if not (self.client.ended or (error.tag != STREAM_ERROR and is_known)):
                yield from self.take(failure._replace(element=error))
            return
        if failure.element.text is None:
            last = self.ending.last
            is_late = last is None or last.place.line <= failure.place.line
            is_end = failure.element.get(DISCONNECTED) is not None
            if is_end and (self.client.ended or not self.client.bound):
                return
            if not self.ending.failed and (is_late or not self.client.is_complete):
                after = "; no stanza came after that" if is_late else ""
                what = "the end of the connection" if is_end else "an error"
                yield cause("complained", failure.place, what=what, after=after)
            return
        findings = [*self.talk.fail(self.client, failure)]
        yield from findings
        sentence, last, when = failure.element.text or "", self.ending.last, "before any stanza"
        if last is not None:
            self.ending.failed = sentence
            what = {HOLE: "stanza", FOOTER: "end"}.get(last.element.tag) or local(last.element.tag)
            when = f"after the {what} {last.place.words}"
        if not findings:
            yield cause("failed", failure.place, sentence, failure=sentence, when=when)

    def give_way(self, stanza: Stanza) -> Iterator[Outcome]:
        """Yield what is wrong with this stream if the client now begins another."""
        yield from self._late(stanza, self.client.count + 1)
        if stanza.sent and stanza.element.tag == HEADER:
            yield from given_up(self.login, self.client, stanza)
            yield from given_up_bind(self.login, self.client, stanza)
            yield from unanswered(self.ending, stanza)
            if not self.client.bound:
                self.login.forget()

    def succeed(self, former: "Stream", stanza: Stanza) -> None:
        """Follow a stream of the same client that broke."""
        self.rooms.expect(former.rooms, stanza, self.client.count)

    def cut(self, stanza: Stanza) -> Finding | None:
        """Return the finding that this stream broke, since the client's next one has begun."""
        self.ending.ignored = ignored(self.requests.owed(self.client), stanza)
        return cut(self.ending, self.client, self.login, stanza)

    def conclusion(self) -> Iterator[Finding]:
        """Note at the end of a stream what the log cannot show, although something may be wrong."""
        self.was_asked = self.talk.has_answered or self.talk.asked > 0
        yield from self.talk.conclusion()
        if self.client.has_received:
            yield from self.rooms.conclusion()
        login = self.login
        stops = login.restarting and login.began_tls and not login.authenticated
        # Some libraries write no namespaces.
        is_begun = login.headers or login.began_tls or (login.offer and not login.authenticated)
        if stops and self.ending.last is not None:
            name = "failed-at-tls" if self.ending.failed else "stops-at-tls"
            yield cause(name, self.ending.last.place, failure=self.ending.failed)
        elif (last := self.ending.last) and login.mechanism and self.ending.failed:
            yield cause("failed-at-login", last.place, failure=self.ending.failed)
        elif last and self._is_open(last):
            who, whose = ("server", "client") if last.sent else ("client", "server")
            words = {"what": local(last.element.tag), "where": last.place.words}
            yield cause("stops-at-question", last.place, who=who, whose=whose, **words)
        elif last and last.element.tag == FEATURES and (login.mechanisms or login.offers_tls):
            offered = ", ".join(login.mechanisms) or "STARTTLS"
            yield cause("stops-at-offer", last.place, offered=quoted(offered))
        elif last and last.element.tag == FEATURES and login.headers and not login.tried:
            yield from given_up(login, self.client, last)
        elif last and is_begun and not self.client.bound and self.rooms.is_empty:
            space, name = split(last.element.tag)
            names_of = {HOLE: "a stanza that it has only in part", HEADER: "the header"}
            is_step = space in {SASL, names.SASL2, TLS, COMPRESS} or last.element.tag == FEATURES
            is_halfway = is_step and name != "failure" and self.client.has_received
            if is_halfway or last.element.tag in names_of:
                what = names_of.get(last.element.tag, f"the {name}")
                yield cause("stops-in-part", last.place, what=what, lacks="that the client got in")
        elif last and last.element.tag == HOLE and self.client.count <= MAX_EXCERPT:
            what = "a stanza that it has only in part"
            yield cause("stops-in-part", last.place, what=what, lacks="what that says")
        elif last and self.client.is_complete and self.client.bound and self.rooms.is_empty:
            yield cause("roomless", last.place)

    def _is_open(self, last: Stanza) -> bool:
        """Whether the client, on its way to a session, waits for an answer to this, or owes it."""
        space, name = split(last.element.tag)
        if last.sent:
            is_bind = self.login.bind is not None and self.login.bind.place == last.place
            is_asked = is_bind or name == "stream" or space in {SASL, TLS, COMPRESS}
            return self.client.has_received and is_asked
        return self.client.has_sent and not self.client.bound and name in {"stream", "challenge"}

    def take_of_any(self, stanza: Stanza) -> None:
        """Take a stanza of one of several clients, if the log does not show which."""
        if stanza.element.tag not in STANZA_TAGS:
            self.requests.acknowledge(self.client)
            return
        self.talk.react()
        if stanza.element.tag == "message":
            self.talk.lose()
            self.requests.remember(stanza)

    def forget(self) -> None:
        """Forget what only rules need, since no further stanza comes."""
        self.login.forget()
        self.rooms.forget()
        self.ending = Ending(self.ending.last, ignored=self.ending.ignored)
        del self.requests, self.talk

    def _late(self, stanza: Stanza, count: int) -> Iterator[Finding]:
        if not any(each.waiting.open for each in (self.rooms, self.requests, self.talk)):
            return
        yield from self.rooms.late(self.client, stanza, count)
        yield from self.requests.late(self.client, stanza, count)
        for finding in self.talk.late(self.client, stanza, count):
            yield finding
            room = self.rooms.at(finding.about)
            if room and room.former_nickname:
                words = {"asked": quoted(room.former_nickname), "nickname": quoted(room.nickname)}
                yield cause("renamed-in-vain", finding.place, about=room.jid, **words)

    def _lose(self) -> None:
        """Allow for a hole in the log: an answer, a login or a join may be in it."""
        self.client.is_complete = False
        self.login.lose()
        self.rooms.lose()
        self.requests.lose()
        self.talk.lose()


def _is_partial(stanza: Stanza) -> bool:
    """Whether a stanza stands for a hole, or is a part of one stanza and a part of another.

    Only what the client sent can show that: a received stanza is as odd as a stranger makes it.
    """
    element = stanza.element
    if element.tag not in STANZA_TAGS or not stanza.sent:
        return element.tag == HOLE
    text = "".join([element.text or "", *[child.tail or "" for child in element]])
    if text != "" and not text.isspace():
        return True
    if element.tag != "iq" or element.get("type") in {"result", "error"}:
        return False
    # RFC 6120, section 8.2.3
    is_request = element.get("type") in {"get", "set"}
    return not (is_request and len(element) == 1 and "}" in element[0].tag)
