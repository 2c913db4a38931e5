"""Which rules look at which stanza. Pure.

A rule is a function of the state of a stream and the stanza that comes next, before the state has
taken it in. Rules look at conditions and namespaces, never at the wording of one server. They keep
nothing themselves, and see no stanza twice.
"""

from collections.abc import Callable, Iterator

from bridge.capture.connecting import STREAM_ERROR, ended, login, session, tls
from bridge.capture.finding import Finding
from bridge.capture.speaking import join, late, looped, misplaced, outside, refused, removed
from bridge.capture.stanza import FOOTER, HEADER, SASL, SASL2, SM, Stanza
from bridge.capture.stream import Stream

RULES: dict[str, tuple[Callable[[Stream, Stanza], Iterator[Finding]], ...]] = {
    HEADER: (login,),
    FOOTER: (login, ended),
    STREAM_ERROR: (tls, session, ended),
    f"{SASL}auth": (tls,),
    f"{SASL}failure": (tls, login),
    f"{SASL2}authenticate": (tls,),
    f"{SASL2}failure": (login,),
    f"{SM}failed": (session,),
    "presence": (session, join, removed),
    "message": (outside, refused, misplaced, looped),
    "iq": (tls,),
}
"""The rules for an element, by its tag; `late` looks at every element."""


def findings_of(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Yield what the rules find when a stanza comes."""
    if stream.waiting:
        yield from late(stream, stanza)
    for rule in RULES.get(stanza.element.tag, ()):
        yield from rule(stream, stanza)
