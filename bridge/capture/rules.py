"""Which rules look at which stanza. Pure.

A rule is a function of a stream's state and the next stanza. It is called before the state has
taken that stanza in. Rules look at conditions and namespaces, never at the wording of one server.
They keep nothing themselves, and see no stanza twice.
"""

from collections.abc import Callable, Iterator

from bridge.capture.connecting import ended, login, session, tls
from bridge.capture.finding import Finding
from bridge.capture.speaking import join, late, looped, misplaced, outside, refused, removed
from bridge.capture.stanza import FOOTER, Stanza
from bridge.capture.stream import Stream
from bridge.wire.names import HEADER, SASL, SASL2, SM, STREAM_ERROR

Rule = Callable[[Stream, Stanza], Iterator[Finding]]

SENT: dict[str, tuple[Rule, ...]] = {
    HEADER: (login,),
    FOOTER: (tls, login),
    f"{{{SASL}}}auth": (tls,),
    f"{{{SASL2}}}authenticate": (tls,),
    "presence": (session, join),
    "message": (outside, misplaced, looped),
    "iq": (tls,),
}
"""The rules for elements that the client sends, by tag; `late` looks at every element."""

RECEIVED: dict[str, tuple[Rule, ...]] = {
    FOOTER: (tls, ended),
    STREAM_ERROR: (tls, session, ended),
    f"{{{SASL}}}failure": (tls, login),
    f"{{{SASL2}}}failure": (login,),
    f"{{{SM}}}failed": (session,),
    "presence": (join, removed),
    "message": (join, refused),
}
"""The rules for elements that the client receives, by tag."""


def findings_of(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Yield the findings of all rules for a stanza."""
    if stream.waiting:
        yield from late(stream, stanza)
    rules = SENT if stanza.sent else RECEIVED
    for rule in rules.get(stanza.element.tag, ()):
        yield from rule(stream, stanza)
