"""How a stream ends: by whom, with which error, after what. State and rules. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Finding, Outcome, recovered
from bridge.capture.login import LoginState
from bridge.capture.stanza import AROUND, FOOTER, HOLE, QUOTED, SIZE, Stanza, outline
from bridge.capture.waiting import PATIENCE_SECONDS, Awaited
from bridge.text import quoted
from bridge.wire.names import HEADER, SASL, SM, STREAM_ERROR, TLS, condition_of, local, split
from bridge.wire.speech import ANSWER_SECONDS

BIG_BYTES = 10_000
"""A server takes stanzas of at least so many bytes (RFC 6120, 13.12)."""
TOO_BIG = frozenset({"policy-violation", "resource-constraint"})
"""The conditions with which servers refuse larger ones."""

_NAMES = {
    "conflict": "taken-over",
    "not-authorized": "unauthorized",
    "not-well-formed": "not-xml",
    "invalid-xml": "not-xml",
    "bad-format": "not-xml",
}
"""The causes of the conditions of a stream's error that have a cause of their own (RFC 6120,
section 4.9.3)."""


@dataclass(eq=False, slots=True)
class Ending:
    """The stanzas after which a stream may end, each as its `outline`."""

    last: Stanza | None = None
    last_sent: Stanza | None = None
    last_bad: Stanza | None = None
    """The latest stanza of the client that is no XML, if the log shows why."""
    size: int = 0
    """How many bytes the client's latest stanza has at least. Its text is counted, or what came of
    it if it is too long to be read."""
    answered: Stanza | None = None
    """The message that the client's latest stanza may answer."""
    header: Stanza | None = None
    """The client's latest header, if the server has offered nothing since."""
    ignored: str = ""
    """A sentence on the server's request that the client had not answered at the end."""
    overdue: Stanza | None = None
    """The client's latest stanza, if the server has not answered it in time."""
    failed: str = ""
    """How the program failed since the latest stanza; empty if it did not."""
    silences: tuple[Finding, ...] = ()
    """The finding that the server has not answered, until it answers."""

    @property
    def heard(self) -> Stanza | None:
        """The message with a body that the log ends with; None if it ends with something else."""
        last = self.last
        is_heard = last is not None and not last.sent and last.element.findtext("body")
        return last if is_heard else None

    def take(self, client: Entity, login: LoginState, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        tag = stanza.element.tag
        is_end = tag in {FOOTER, STREAM_ERROR}
        if self.silences and not (stanza.sent or is_end or client.ended or tag == HEADER):
            yield from recovered(self.silences, " It answered later.")
            self.silences = ()
        if is_end and not (client.ended or stanza.sent):
            yield from ended(self, client, login, stanza)
        elif is_end and not client.ended:
            yield from own_error(self, stanza)
            yield from unanswered(self, stanza)
        client.ended = client.ended or is_end
        heard, self.last, self.failed = self.heard, outline(stanza), ""
        if stanza.sent:
            self.last_sent = self.last
            text = sum(len(each.encode()) for each in stanza.element.itertext())
            self.size = int(stanza.element.get(SIZE, text)) if tag == HOLE else text
            self.header = self.last if tag == HEADER else None
            if tag == HOLE and stanza.element.text:
                self.last_bad = self.last
            self.answered = heard if tag in {"message", HOLE} else None
        elif tag != HEADER:
            self.header = None


def late(ending: Ending, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server says nothing more to the client's header, STARTTLS or login."""
    asked = ending.header or ending.last
    if asked is None or not asked.sent or asked is ending.overdue:
        return
    if asked.seconds is None or stanza.seconds is None:
        return
    seconds, (space, name) = stanza.seconds - asked.seconds, split(asked.element.tag)
    if seconds < PATIENCE_SECONDS:
        return
    ending.overdue = asked
    if asked is ending.header:
        ending.silences = (*unanswered(ending, stanza),)
        ending.header = None
    elif space in {SASL, TLS}:
        within = f" in {seconds:.0f} s"
        ending.silences = (cause("no-reply", asked.place, what=name, within=within),)
    yield from ending.silences


def ended(ending: Ending, client: Entity, login: LoginState, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server ended the stream: with which error, and after which stanza."""
    after, domain = _after(ending, stanza), client.domain
    if stanza.element.tag == FOOTER:
        # The client may have closed the stream first, in a part that the log lost.
        was_cut, last = stanza.element.get("cut"), ending.last
        if not (was_cut or client.has_sent):
            yield cause("closing", stanza.place)
        elif was_cut or last is None or last.element.tag not in {HOLE, f"{{{SASL}}}failure"}:
            name = "given-up-on" if ending.ignored else "dropped" if was_cut else "closed"
            words = {"after": after, "ignored": ending.ignored, "got": ""}
            yield cause(name, stanza.place, about=domain, **words)
        return
    condition, text = condition_of(stanza.element)
    is_about_tls = condition == "policy-violation" and login.offers_tls and not login.began_tls
    is_secret = condition == "not-authorized" and client.is_component and not login.authenticated
    if is_about_tls or is_secret:
        return  # `tls` and `secret` find that
    name, sent = _before_error(ending, client, login, stanza)
    came = f" It came{after}." if after else ""
    words = {**meaning("stream", condition, client, text), "sent": sent, "after": came}
    yield cause(name, stanza.place, condition, about=domain, why=text, **words)


def _before_error(
    ending: Ending, client: Entity, login: LoginState, stanza: Stanza
) -> tuple[str, str]:
    """Return the cause of a stream's error, and what the client had done, if that led to it."""
    condition, _ = condition_of(stanza.element)
    name, sent = _NAMES.get(condition, "error"), ""
    if name == "taken-over" and client.is_component and not login.authenticated:
        name = "name-taken"
    if condition in TOO_BIG and ending.size >= BIG_BYTES:
        name, sent = "too-big", f" The client's latest stanza has at least {ending.size} bytes."
    elif (element := stanza.element.find(f"{{{SM}}}handled-count-too-high")) is not None:
        handled, count = (quoted(element.get(name, "?")) for name in ("h", "send-count"))
        name = "too-high"
        sent = f" The client acknowledged {handled}, and the server had sent {count}."
    elif condition == "connection-timeout":
        sent = ending.ignored
    if (name == "not-xml" or condition == "invalid-namespace") and login.lacks_header:
        name, sent = "headless", " The log has no header of the client since its login."
    if name == "not-xml" and (bad := ending.last_bad) is not None:
        around = bad.element.get(AROUND)
        where = f", in {quoted(around)}" if around else ""
        sent = f" The client had sent {bad.element.text}{where} ({bad.place.words})."
    if sent not in {"", ending.ignored} and (heard := ending.answered) is not None:
        what = quoted(heard.element.findtext("body") or "", QUOTED)
        sent += f" It had just got the message {what} {heard.place.words}."
    return name, sent


def own_error(ending: Ending, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client itself ended the stream with an error, and what it had just got.

    After a refused login, that is no further fault.
    """
    last = ending.last
    is_refused = last is not None and last.element.tag == f"{{{SASL}}}failure"
    if stanza.element.tag == STREAM_ERROR and not is_refused:
        condition, text = condition_of(stanza.element)
        got = f" It had just got the {_what(last.element)} {last.place.words}." if last else ""
        yield cause("own-error", stanza.place, condition=condition, why=text, got=got)


def unanswered(ending: Ending, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server never answered the client's header, until the client gave up."""
    if (header := ending.header) is None:
        return
    seconds = None
    if header.seconds is not None and stanza.seconds is not None:
        seconds = stanza.seconds - header.seconds
    if seconds is None and stanza.element.tag == HEADER:
        return  # the log may have only what the client sent
    if seconds is None or seconds >= PATIENCE_SECONDS:
        within = "" if seconds is None else f" in {seconds:.0f} s"
        yield cause("no-answer", header.place, within=within)


def cut(ending: Ending, client: Entity, login: LoginState, stanza: Stanza) -> Finding | None:
    """Find that a stream broke without a word: the client's next stream has begun."""
    if not client.bound or not login.has_own_header or client.ended:
        return None
    place = ending.last.place if ending.last else stanza.place
    words = {"after": _after(ending, stanza), "failure": ending.failed, "ignored": ending.ignored}
    words["got"] = ""
    if heard := ending.heard:
        what = quoted(heard.element.findtext("body") or "", QUOTED)
        words["got"] = f" It had got the message {what} {heard.place.words} last."
    name = "crashed" if ending.failed else "given-up-on" if ending.ignored else "cut"
    return cause(name, place, about=client.domain, **words)


def ignored(owed: Awaited | None, stanza: Stanza) -> str:
    """Return a sentence on the server's request that the client had not answered until `stanza`.

    It is empty if there is none, or if the client had little time for it.
    """
    if owed is None:
        return ""
    asked, now = owed.stanza.seconds, stanza.seconds
    if asked is not None and now is not None and now - asked < ANSWER_SECONDS:
        return ""
    what = f"request {quoted(owed.what, QUOTED)}" if owed.what else "r (XEP-0198)"
    return f" The client never answered the server's {what} {owed.stanza.place.words}."


def _after(ending: Ending, stanza: Stanza) -> str:
    """Return a clause that names the client's last stanza, and how long it was silent since."""
    words = ""
    last, before = ending.last_sent, ending.last
    if last is not None:
        words = f" after the client's {_what(last.element)} {last.place.words}"
    if before is not None and before.seconds is not None and stanza.seconds is not None:
        silence = stanza.seconds - before.seconds
        if silence >= 1:
            words += f"{',' if words else ''} after {silence:.0f} s without a stanza"
    return words


def _what(element: Element) -> str:
    """Return a few words that name a stanza or another element."""
    if element.tag == HOLE:
        size = element.get(SIZE)
        return f"stanza of at least {size} bytes" if size else "stanza that cannot be read"
    to, name = element.get("to"), local(element.tag)
    return f"{name} to {quoted(to, 100)}" if to and element.tag != HEADER else name
