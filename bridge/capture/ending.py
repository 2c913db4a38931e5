"""How a stream ends: by whom, with which error, after what. State and rules. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Finding
from bridge.capture.login import LoginState
from bridge.capture.stanza import FOOTER, HOLE, Stanza, outline
from bridge.text import quoted
from bridge.wire.names import HEADER, STREAM_ERROR, condition_of, local

NOT_XML = frozenset({"not-well-formed", "invalid-xml", "bad-format"})
"""If a stream ends with one of these conditions, the client sent bad XML (RFC 6120, section
4.9.3)."""


@dataclass(eq=False, slots=True)
class Ending:
    """The stanzas after which a stream may end, each as its `outline`."""

    last: Stanza | None = None
    last_sent: Stanza | None = None
    last_bad: Stanza | None = None
    """The latest stanza of the client that is no XML, if the log shows why."""

    def take(self, client: Entity, login: LoginState, stanza: Stanza) -> Iterator[Finding]:
        """Take a stanza, and yield what it shows to be wrong."""
        is_end = stanza.element.tag in {FOOTER, STREAM_ERROR}
        if is_end and not stanza.sent and not client.ended:
            yield from ended(self, client, login, stanza)
        client.ended = client.ended or is_end
        self.last = outline(stanza)
        if stanza.sent:
            self.last_sent = self.last
            if stanza.element.tag == HOLE and stanza.element.text:
                self.last_bad = self.last


def ended(ending: Ending, client: Entity, login: LoginState, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server ended the stream: with which error, and after which stanza."""
    after, domain = _after(ending, stanza), client.domain
    if stanza.element.tag == FOOTER:
        # The client may have closed the stream first, in a part that the log lost.
        if ending.last is None or ending.last.element.tag != HOLE:
            yield cause("closed", stanza.place, about=domain, after=after)
        return
    condition, text = condition_of(stanza.element)
    is_about_tls = condition == "policy-violation" and login.offers_tls and not login.began_tls
    if is_about_tls:
        return  # `tls` finds that
    message, hint = meaning("stream", condition, client, text)
    name, sent = "taken-over" if condition == "conflict" else "error", ""
    if condition in NOT_XML:
        name = "not-xml"
    if name == "not-xml" and (bad := ending.last_bad) is not None:
        sent = f" The client had sent {bad.element.text} ({bad.place.words})."
    came = f" It came{after}." if after else ""
    words = {"message": message, "hint": hint, "sent": sent, "after": came}
    yield cause(name, stanza.place, condition, about=domain, **words)


def cut(ending: Ending, client: Entity, login: LoginState, stanza: Stanza) -> Finding | None:
    """Find that a stream broke without a word: the client's next stream has begun."""
    if not client.bound or not login.has_own_header or client.ended:
        return None
    place = ending.last.place if ending.last else stanza.place
    return cause("cut", place, about=client.domain, after=_after(ending, stanza))


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
        return "stanza that is no XML"
    to, name = element.get("to"), local(element.tag)
    return f"{name} to {quoted(to, 100)}" if to and element.tag != HEADER else name
