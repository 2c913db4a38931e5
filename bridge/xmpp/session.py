"""Beginning a session: a resource (RFC 6120, section 7), or the one that was cut (XEP-0198)."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bridge.escaping import quoted
from bridge.xmpp import stanzas
from bridge.xmpp.management import MAX_RESUMPTION_SECONDS, Former, Management
from bridge.xmpp.negotiation import Negotiation
from bridge.xmpp.stanzas import BIND, CLIENT, SM

MayAnswer: TypeAlias = Callable[[str | None, str | None], bool]
"""Whether an answer from the first can be to what the second was asked; None is the server."""


class BindRefusedError(Exception):
    """The server gives us no resource."""

    def __init__(self, error: stanzas.StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


@dataclass(frozen=True)
class Session:
    """What was agreed on."""

    jid: str
    """Our full JID."""
    management: Management | None
    """None where the server does not manage streams."""
    resumed: bool
    """Whether it is the former session, in which case we are still in our rooms."""


async def begin(
    negotiation: Negotiation,
    resource: str,
    former: Former | None,
    may_answer: MayAnswer,
    on_finding: Callable[[str], None],
) -> Session:
    """Go on with the `former` session, or else begin one; raises `BindRefusedError`.

    Stanzas that come meanwhile stay with the negotiation: whoever knows our full JID may send them.
    """
    managed = (await negotiation.features()).find(f"{{{SM}}}sm") is not None
    if former is not None and managed and await _resume(negotiation, former):
        return Session(former.jid, Management(former.id, former.handled), resumed=True)
    jid = await _bind(negotiation, resource, may_answer)
    management = await _enable(negotiation) if managed else None
    on_finding(f"full JID {quoted(jid)}")
    on_finding(_told(management))
    return Session(jid, management, resumed=False)


async def _bind(negotiation: Negotiation, resource: str, may_answer: MayAnswer) -> str:
    id_ = secrets.token_hex(8)
    negotiation.send(stanzas.query("set", None, id_, stanzas.bind(resource)))
    answer = await negotiation.next_beside_stanzas((f"{{{CLIENT}}}iq",))
    while answer.get("id") != id_ or not may_answer(answer.get("from"), None):
        negotiation.keep(answer)
        answer = await negotiation.next_beside_stanzas((f"{{{CLIENT}}}iq",))
    jid = stanzas.prepared(answer.findtext(f"{{{BIND}}}bind/{{{BIND}}}jid") or "")
    if answer.get("type") != "result" or not jid:
        raise BindRefusedError(stanzas.error_of(answer))
    return jid


async def _resume(negotiation: Negotiation, former: Former) -> bool:
    resumed, failed = f"{{{SM}}}resumed", f"{{{SM}}}failed"
    negotiation.send(stanzas.resuming(former.id, former.handled))
    return (await negotiation.next_beside_stanzas((resumed, failed))).tag == resumed


async def _enable(negotiation: Negotiation) -> Management | None:
    enabled, failed = f"{{{SM}}}enabled", f"{{{SM}}}failed"
    negotiation.send(stanzas.enabling(MAX_RESUMPTION_SECONDS))
    answer = await negotiation.next_beside_stanzas((enabled, failed))
    if answer.tag == failed:
        return None
    resumable = answer.get("resume") in {"true", "1"}
    return Management(answer.get("id") if resumable else None)


def _told(management: Management | None) -> str:
    if management is None:
        return "no stream management"
    return f"stream management {'without' if management.id is None else 'with'} resumption"
