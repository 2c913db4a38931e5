"""Writes stanzas, and the answers that server and rooms have in common (RFC 6120 section 8)."""

from xml.etree.ElementTree import Element

DOMAIN = "localhost"
"""The only domain of the server."""

CLIENT = "{jabber:client}"
MUC = "http://jabber.org/protocol/muc"
DISCO_INFO = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS = "http://jabber.org/protocol/disco#items"

ESCAPES = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&<>\"'\t\n\r"})
"""For text and attributes; an attribute would lose a bare line break (XML 1.0 section 3.3.3)."""

Delivery = tuple[str, str]
"""The full JID of a recipient, and the XML for it."""


def escape(text: str | None) -> str:
    """Return `text` escaped for content and for attributes."""
    return (text or "").translate(ESCAPES)


def render(element: Element, inherited: str = CLIENT) -> str:
    """Return the XML of an element that stands where `inherited` is the default namespace."""
    space, brace, name = element.tag.rpartition("}")
    opening = name if space + brace == inherited else f"{name} xmlns='{space[1:]}'"
    for key, value in element.items():
        if "}" not in key:  # of attributes in a namespace only xml:lang is ever used
            opening += f" {key}='{escape(value)}'"
    children = (render(child, space + brace) + escape(child.tail) for child in element)
    return f"<{opening}>{escape(element.text)}{''.join(children)}</{name}>"


def reply(stanza: Element, kind: str, payload: str = "") -> list[Delivery]:
    """Return an answer to the sender of a stanza; none if the stanza is an answer itself."""
    if stanza.get("type") in ("error", "result"):
        return []
    name, to = stanza.tag.removeprefix(CLIENT), stanza.get("from", "")
    swapped = {"id": stanza.get("id"), "from": stanza.get("to"), "to": to, "type": kind}
    head = "".join(f" {key}='{escape(value)}'" for key, value in swapped.items() if value)
    return [(to, f"<{name}{head}>{payload}</{name}>")]


def error(stanza: Element, condition: str) -> list[Delivery]:
    """Return an error as the answer to a stanza (RFC 6120 section 8.3)."""
    cause = f"<{condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
    # By this, a client with several joins under way tells their refusals from other errors.
    joining = "" if stanza.find(f"{{{MUC}}}x") is None else f"<x xmlns='{MUC}'/>"
    return reply(stanza, "error", f"{joining}<error type='cancel'>{cause}</error>")


def disco(iq: Element, identity: str, features: tuple[str, ...], *items: str) -> list[Delivery]:
    """Return the answer to ping (XEP-0199) and service discovery (XEP-0030).

    `identity` has the attributes of the identity, `items` are JIDs.
    """
    asked = iq[0].tag if iq.get("type") == "get" and len(iq) else ""
    if asked == "{urn:xmpp:ping}ping":
        return reply(iq, "result")
    if asked == f"{{{DISCO_INFO}}}query":
        found = f"<identity {identity}/>" + "".join(f"<feature var='{name}'/>" for name in features)
        return reply(iq, "result", f"<query xmlns='{DISCO_INFO}'>{found}</query>")
    if asked == f"{{{DISCO_ITEMS}}}query":
        found = "".join(f"<item jid='{escape(jid)}'/>" for jid in items)
        return reply(iq, "result", f"<query xmlns='{DISCO_ITEMS}'>{found}</query>")
    return error(iq, "service-unavailable")
