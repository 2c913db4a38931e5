"""Writes stanzas, and the answers that server and rooms have in common (RFC 6120 section 8)."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from bridge.wire.names import DISCO_INFO, DISCO_ITEMS, JOIN, MUC, PING, PINGED, STANZA_ERRORS, local
from bridge.wire.xmlwriter import escaped

DOMAIN = "localhost"
"""The only domain of the server."""

PART_LIMIT = 1023
"""Most characters of a nickname or another resource, and of each half of an account's JID (RFC 7622
section 3.1)."""

AUTH_ERRORS = ("forbidden", "not-authorized", "registration-required")
"""Conditions of errors of the type `auth`; all others are of the type `cancel` (section 8.3.3)."""

ANSWERS = ("result", "error")
ABOUT_CONTACTS = ("probe", "subscribe", "subscribed", "unsubscribe", "unsubscribed")
TYPES = {
    "iq": ("get", "set", *ANSWERS),
    "presence": (None, "unavailable", "error", *ABOUT_CONTACTS),
}
"""The types of stanzas (section 8.2.3; RFC 6121 section 4.7.1); messages may have any."""

FEATURES = (DISCO_INFO, DISCO_ITEMS, PING)
"""What the server, its accounts, rooms and occupants have in common."""

SESSION = "{urn:ietf:params:xml:ns:xmpp-session}session"
"""The tag of a request that older clients make after they have logged in (RFC 3921 section 3)."""

Deliveries = list[tuple[str, str]]
"""Stanzas to send, in this order: the full JID of each recipient, and the XML for it."""


class SandboxError(Exception):
    """A client of the sandbox broke a protocol, or left; the subclass says which."""


class RefusedError(SandboxError):
    """The request of a stanza is refused; the text is a condition of RFC 6120 section 8.3.3."""


def refuse(**reasons: object) -> None:
    """Raise `RefusedError` with the first condition that holds; in names, `_` stands for `-`."""
    for condition, holds in reasons.items():
        if holds:
            raise RefusedError(condition.replace("_", "-"))


def tag(name: str, content: str = "", /, **attributes: str | None) -> str:
    """Return the XML of an element, without empty attributes; `from_` means `from`."""
    given = [(key.rstrip("_"), escaped(value)) for key, value in attributes.items() if value]
    opening = "".join(f" {key}='{value}'" for key, value in given)
    return f"<{name}{opening}" + (f">{content}</{name}>" if content else "/>")


def is_malformed(stanza: Element) -> bool:
    """Return whether the type is unknown, or an IQ lacks its ID or its only child."""
    name, kind = local(stanza.tag), stanza.get("type")
    lacks = not stanza.get("id") or (kind not in ANSWERS and len(stanza) != 1)
    return kind not in TYPES.get(name, (kind,)) or (name == "iq" and lacks)


def reply(stanza: Element, kind: str, payload: str = "") -> Deliveries:
    """Return an answer to the sender of a stanza; none if the stanza is an answer itself."""
    if stanza.get("type") in ANSWERS:
        return []
    name, to = local(stanza.tag), stanza.get("from", "")
    xml = tag(name, payload, id=stanza.get("id"), from_=stanza.get("to"), to=to, type=kind)
    return [(to, xml)]


def error(stanza: Element, condition: str) -> Deliveries:
    """Return an error as the answer to a stanza (RFC 6120 section 8.3)."""
    cause = tag(condition, xmlns=STANZA_ERRORS)
    # A client with several joins under way learns from this element that the room refused a join.
    joining = "" if stanza.find(JOIN) is None else tag("x", xmlns=MUC)
    kind = "auth" if condition in AUTH_ERRORS else "cancel"
    return reply(stanza, "error", joining + tag("error", cause, type=kind))


def disco(
    iq: Element, identity: str, features: Iterable[str], *items: str, name: str = "", form: str = ""
) -> Deliveries:
    """Return the answer to ping (XEP-0199), service discovery (XEP-0030) and `SESSION`.

    `identity` is a category and a type with a blank between, `items` are JIDs, `form` is XML.
    """
    asked = iq[0].tag if iq.get("type") in ("get", "set") and len(iq) else ""
    if asked == SESSION or (asked == PINGED and iq.get("type") == "get"):
        return reply(iq, "result")
    if asked == f"{{{DISCO_INFO}}}query":
        category, type_ = identity.split()
        info = tag("identity", category=category, type=type_, name=name)
        info += "".join(tag("feature", var=feature) for feature in (*FEATURES, *features)) + form
        return reply(iq, "result", tag("query", info, xmlns=DISCO_INFO))
    if asked == f"{{{DISCO_ITEMS}}}query":
        content = "".join(tag("item", jid=jid) for jid in items)
        return reply(iq, "result", tag("query", content, xmlns=DISCO_ITEMS))
    return error(iq, "service-unavailable")
