"""The rules about connecting and staying connected: stream, TLS, login, session. Pure."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.finding import Finding
from bridge.capture.stanza import FOOTER, HOLE, Stanza
from bridge.capture.stream import Stream
from bridge.text import quoted
from bridge.wire.names import HEADER, SASL, SASL2, SM, STREAM_ERROR, condition_of, local

NOT_XML = frozenset({"not-well-formed", "invalid-xml", "bad-format"})
"""If a stream ends with one of these conditions, the client sent bad XML (RFC 6120, section
4.9.3)."""


def ended(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server ended the stream: with which error, and after which stanza."""
    if stream.ended:
        return
    after, domain = _after(stream, stanza), stream.domain
    if stanza.element.tag == FOOTER:
        # The client may have closed the stream first, in a part that the log lost.
        if stream.last is None or stream.last.element.tag != HOLE:
            yield cause("closed", stanza.place, about=domain, after=after)
        return
    condition, text = condition_of(stanza.element)
    is_about_tls = condition == "policy-violation" and stream.offers_tls and not stream.began_tls
    if condition == "conflict" or is_about_tls:
        return  # `session` and `tls` find that
    message, hint = meaning("stream", condition, stream, text)
    name, sent = "not-xml" if condition in NOT_XML else "error", ""
    if name == "not-xml" and (bad := stream.last_bad) is not None:
        sent = f" The client had sent {bad.element.text} ({bad.place.words})."
    came = f" It came{after}." if after else ""
    words = {"message": message, "hint": hint, "sent": sent, "after": came}
    yield cause(name, stanza.place, condition, about=domain, **words)


def cut(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that a stream broke without a word: the client's next stream has begun."""
    if stream.bound and stream.has_own_header and not stream.ended:
        place = stream.last.place if stream.last else stanza.place
        yield cause("cut", place, about=stream.domain, after=_after(stream, stanza))


def tls(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that TLS is required, and the client does not begin it."""
    element = stanza.element
    is_refused = stream.requires_tls and not (stream.began_tls or stream.ended)
    if element.tag == f"{{{SASL}}}failure":
        is_refused = element.find(f"{{{SASL}}}encryption-required") is not None
    elif element.tag == STREAM_ERROR and stream.offers_tls and not stream.began_tls:
        is_violation = condition_of(element)[0] == "policy-violation"
        is_refused = is_refused or is_violation
    elif element.tag != FOOTER:
        is_refused = is_refused and stanza.sent
    if is_refused:
        yield cause("no-tls", stanza.place)


def login(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find why the server refused the login, or that the client gave the login up."""
    element = stanza.element
    if element.tag in {f"{{{SASL}}}failure", f"{{{SASL2}}}failure"}:
        yield from _refused_login(stream, stanza)
        return
    is_end = element.tag == FOOTER or (element.tag == HEADER and not stream.restarting)
    is_open = not stream.authenticated and not stream.ended and stream.is_complete
    if not (is_end and is_open):
        return
    if stream.mechanism:
        when = "after the server's challenge" if stream.challenged else "before the server answered"
        yield cause("given-up", stanza.place, mechanism=quoted(stream.mechanism), when=when)
    elif stream.mechanisms and not stream.tried_login:
        offered = quoted(", ".join(stream.mechanisms))
        yield cause("no-mechanism", stanza.place, offered=offered)


def _refused_login(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    condition, text = condition_of(stanza.element)
    if condition == "encryption-required":
        return  # `tls` finds that
    message, hint = meaning("sasl", condition, stream, text)
    offers_binding = any(name.endswith("-PLUS") for name in stream.mechanisms)
    name = "refused-login"
    if condition in {"not-authorized", "malformed-request"}:
        if stream.binding_flag == "p":
            name = "bound"
        elif stream.binding_flag == "y" and offers_binding:
            name = "downgrade"
    yield cause(name, stanza.place, condition, message=message, hint=hint)


def session(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find what disturbs the session: conflicts, refused resumption, a negative priority."""
    element, last = stanza.element, stream.last_sent
    if element.tag == STREAM_ERROR:
        condition, text = condition_of(element)
        if condition == "conflict":
            message, _ = meaning("stream", condition, stream, text)
            yield cause("conflict", stanza.place, message=message)
    elif (
        element.tag == f"{{{SM}}}failed"
        and last is not None
        and last.element.tag == f"{{{SM}}}resume"
    ):
        yield cause("resumption", stanza.place)
    elif element.tag == "presence" and not element.get("to"):
        priority = (element.findtext("priority") or "").strip()
        if priority.startswith("-"):
            yield cause("priority", stanza.place, priority=quoted(priority, 5))


def _after(stream: Stream, stanza: Stanza) -> str:
    """Return a clause that names the client's last stanza, and how long it was silent since."""
    words = ""
    last, before = stream.last_sent, stream.last
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
