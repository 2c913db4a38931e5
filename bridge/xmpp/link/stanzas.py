"""Stanzas: finds out who sent them, and builds our own. Their names are in `bridge.wire.names`.

`bridge.xmpp.muc.reading` turns the stanzas of a room into events.
"""

from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from bridge.wire import names
from bridge.wire.xmlwriter import written
from bridge.xmpp.errors import XmppError
from bridge.xmpp.link.from_slixmpp import prepared

CACHED_ADDRESSES = 256
"""How many parsed addresses we cache. Without the cache, each event of an occupant would have its
own copies of the same texts."""

MAX_DIGITS = 9
"""Most digits of a number: counts of occupants, uptimes in seconds and limits have fewer."""

BRIDGE = "xmpp-debug-bridge"
"""The name of a bridge in service discovery."""

HISTORY_ON_JOINING = 20
"""How many messages of the room's history we ask for on entering, for context."""


class IqError(XmppError):
    """An IQ request was answered with an error."""

    def __init__(self, error: names.StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


def occupant_jid(room: str, nickname: str) -> str | None:
    """Return the prepared occupant JID; None if the nickname cannot be one."""
    return prepared(f"{room}/{nickname}")


def xml_of(element: Element | str) -> str:
    """Return an element as XML in the stream's namespace; a string is returned as it is."""
    return element if isinstance(element, str) else written(element, names.CLIENT)


class Address(NamedTuple):
    """A JID and its parts."""

    jid: str
    bare: str
    """Prepared."""
    resource: str
    """As the server wrote it: for an occupant the nickname."""


def sender_of(stanza: Element) -> Address | None:
    """Return the address in `from`; None without a valid one."""
    jid = stanza.get("from", "")
    return None if len(jid) > names.MAX_JID_CHARACTERS else _address(jid)


@lru_cache(CACHED_ADDRESSES)
def _address(jid: str) -> Address | None:
    """Read an address that a server wrote.

    The resource is not prepared again. The server has prepared it, by tables that may differ from
    slixmpp's. By slixmpp's tables, a nickname could be invalid, which would hide its occupant. Or
    it could become the nickname of another occupant.
    """
    bare, slash, resource = jid.partition("/")
    valid = prepared(bare)
    if not valid or (slash and not resource):
        return None
    return Address(f"{valid}{slash}{resource}", valid, resource)


def archive_result(stanza: Element) -> tuple[str, str, Element] | None:
    """Return the archive's address, the query's id and the result in a message (XEP-0313).

    None for any other stanza.
    """
    result = stanza.find(f"{{{names.MAM}}}result") if stanza.tag == names.MESSAGE else None
    if result is None or (archive := prepared(stanza.get("from", ""))) is None:
        return None
    return archive, result.get("queryid", ""), result


def whole_number(text: str | None) -> int | None:
    """Return `text` as a number; None if it is no number, or has more than `MAX_DIGITS` digits."""
    text = (text or "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        return None
    return int(text)


def join_presence(
    occupant: str, password: str | None, since: str | None, *, history: bool = True
) -> Element:
    """Return the presence that joins a room (XEP-0045, section 7.2); `since` is a time in UTC."""
    presence = Element(names.PRESENCE, {"to": occupant})
    extension = SubElement(presence, names.JOIN)
    asked = {"maxstanzas": str(HISTORY_ON_JOINING if history else 0)}
    if history and since is not None:
        asked = {"since": since}
    SubElement(extension, f"{{{names.MUC}}}history", asked)
    if password is not None:
        SubElement(extension, f"{{{names.MUC}}}password").text = password
    return presence


def leave_presence(occupant: str) -> Element:
    """Return the presence that leaves a room (XEP-0045, section 7.14)."""
    return Element(names.PRESENCE, {"to": occupant, "type": "unavailable"})


def groupchat_message(room: str, body: str, id_: str) -> Element:
    """Return a message to all in the room."""
    message = Element(names.MESSAGE, {"to": room, "type": "groupchat", "id": id_})
    SubElement(message, names.BODY).text = body
    return message


def iq_request(type_: str, to: str | None, id_: str, payload: Element) -> Element:
    """Return an IQ request around `payload`; `type_` is `get` or `set`."""
    iq = Element(names.IQ, {"type": type_, "id": id_} | ({} if to is None else {"to": to}))
    iq.append(payload)
    return iq


def ping() -> Element:
    """Return the payload of a ping (XEP-0199)."""
    return Element(names.PINGED)


def default_configuration() -> Element:
    """Return the payload that opens a new room with its defaults (XEP-0045, section 10.1.2)."""
    payload = Element(f"{{{names.MUC_OWNER}}}query")
    SubElement(payload, f"{{{names.DATA_FORMS}}}x", {"type": "submit"})
    return payload


def reply_to(iq: Element) -> Element:
    """Return the reply to an IQ request: a result to pings and disco#info, otherwise an error."""
    reply = Element(names.IQ, {"type": "result", "id": iq.get("id", "")})
    if sender := iq.get("from"):
        reply.set("to", sender)
    asked = iq[0].tag if len(iq) and iq.get("type") == "get" else ""
    if asked == f"{{{names.DISCO_INFO}}}query":
        info = SubElement(reply, f"{{{names.DISCO_INFO}}}query")
        identity = {"category": "client", "type": "bot", "name": BRIDGE}
        SubElement(info, f"{{{names.DISCO_INFO}}}identity", identity)
        for feature in (names.DISCO_INFO, names.MUC, names.PING):
            SubElement(info, f"{{{names.DISCO_INFO}}}feature", {"var": feature})
    elif asked != names.PINGED:
        reply.set("type", "error")
        error = SubElement(reply, f"{{{names.CLIENT}}}error", {"type": "cancel"})
        SubElement(error, f"{{{names.STANZA_ERRORS}}}service-unavailable")
    return reply
