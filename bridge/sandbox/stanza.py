"""Stanzas as values: building, answering and writing them (RFC 6120 section 8)."""

from collections.abc import Mapping
from datetime import datetime
from xml.etree.ElementTree import Element

CLIENT = "{jabber:client}"
STREAMS = "{http://etherx.jabber.org/streams}"
STANZA_ERRORS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"
DATA = "{jabber:x:data}"
DELAY = "{urn:xmpp:delay}"
DISCO_INFO = "{http://jabber.org/protocol/disco#info}"
DISCO_ITEMS = "{http://jabber.org/protocol/disco#items}"
MUC = "{http://jabber.org/protocol/muc}"
MUC_ADMIN = "{http://jabber.org/protocol/muc#admin}"
MUC_OWNER = "{http://jabber.org/protocol/muc#owner}"
MUC_USER = "{http://jabber.org/protocol/muc#user}"
PING = "{urn:xmpp:ping}"
STANZA_ID = "{urn:xmpp:sid:0}"
XML = "{http://www.w3.org/XML/1998/namespace}"

MESSAGE, PRESENCE, IQ = CLIENT + "message", CLIENT + "presence", CLIENT + "iq"

ERROR_TYPES = {
    "bad-request": "modify",
    "forbidden": "auth",
    "jid-malformed": "modify",
    "resource-constraint": "wait",
}
"""What a client may do about a condition (RFC 6120 section 8.3.3); the others are `cancel`."""


def build(
    tag: str, attributes: Mapping[str, str] | None = None, *children: Element, text: str = ""
) -> Element:
    """Put an element together; `tag` is `{namespace}name`."""
    element = Element(tag, dict(attributes or {}))
    element.text = text or None
    element.extend(children)
    return element


def addressed(stanza: Element, **attributes: str) -> Element:
    """Copy a stanza with other attributes (`sender` stands for `from`), sharing its children."""
    if "sender" in attributes:
        attributes["from"] = attributes.pop("sender")
    copy = Element(stanza.tag, {**stanza.attrib, **attributes})
    copy.text = stanza.text
    copy.extend(stanza)
    return copy


def answer(iq: Element, *payload: Element) -> list[Element]:
    """Answer a request with its result (RFC 6120 section 8.2.3)."""
    return [build(IQ, {"type": "result", **_returned(iq)}, *payload)]


def bounce(stanza: Element, condition: str) -> list[Element]:
    """Answer a stanza with an error, unless that could go on for ever (RFC 6120 section 8.3.1)."""
    if stanza.get("type") in ("error", "result"):
        return []
    error = build(
        CLIENT + "error",
        {"type": ERROR_TYPES.get(condition, "cancel")},
        build(STANZA_ERRORS + condition),
    )
    # A client that sent several joins tells the refusals of them from other errors by this.
    echo = [] if stanza.find(MUC + "x") is None else [build(MUC + "x")]
    return [build(stanza.tag, {"type": "error", **_returned(stanza)}, *echo, error)]


def _returned(stanza: Element) -> dict[str, str]:
    swapped = {"id": stanza.get("id"), "from": stanza.get("to"), "to": stanza.get("from")}
    return {name: value for name, value in swapped.items() if value is not None}


def bare(jid: str) -> str:
    """Take off a JID's resource, which may itself hold slashes (RFC 7622 section 3.1)."""
    return jid.partition("/")[0]


def prepared(jid: str) -> str:
    """Put the case-insensitive part of a JID in lower case (RFC 7622 section 3.3)."""
    account, slash, resource = jid.partition("/")
    return account.lower() + slash + resource


def stamp(at: datetime) -> str:
    """Write a time, which is in UTC, as XEP-0082 has it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def render(element: Element, default: str = CLIENT) -> str:
    """Write an element as it goes into a stream whose default namespace is `default`."""
    space, brace, name = element.tag.rpartition("}")
    namespace = space + brace
    attributes: list[str] = []
    if namespace == STREAMS:
        # Bound in the stream header; as in RFC 6120 section 4.8.5, the default stays as it was.
        name = "stream:" + name
    elif namespace != default:
        default = namespace
        attributes.append(f' xmlns="{escape(namespace[1:-1])}"')
    for number, (key, value) in enumerate(element.attrib.items()):
        space, brace, local = key.rpartition("}")
        if space + brace == XML:
            local = "xml:" + local
        elif brace:
            attributes.append(f' xmlns:n{number}="{escape(space[1:])}"')
            local = f"n{number}:{local}"
        attributes.append(f' {local}="{escape(value)}"')
    opening = f"<{name}{''.join(attributes)}"
    if not len(element) and not element.text:
        return opening + "/>"
    parts = [opening, ">", escape(element.text or "")]
    for child in element:
        parts += render(child, default), escape(child.tail or "")
    return "".join([*parts, "</", name, ">"])


def escape(text: str) -> str:
    """Make text safe in content and in attributes alike."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A parser would turn these into a space or a newline (XML 1.0 sections 2.11 and 3.3.3).
    text = text.replace("\r", "&#13;").replace("\t", "&#9;").replace("\n", "&#10;")
    return text.replace('"', "&quot;")
