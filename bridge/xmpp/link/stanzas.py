"""Stanzas: their names, who sent them, what an error in one says, and building those we send.

`bridge.xmpp.muc.reading` turns the stanzas of a room into events.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from bridge.wire.xmlwriter import written
from bridge.xmpp.errors import XmppError
from bridge.xmpp.link.from_slixmpp import MAX_JID_CHARACTERS, prepared

CLIENT = "jabber:client"
STREAMS = "http://etherx.jabber.org/streams"
STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams"
STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"
TLS = "urn:ietf:params:xml:ns:xmpp-tls"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
SASL_CB = "urn:xmpp:sasl-cb:0"
BIND = "urn:ietf:params:xml:ns:xmpp-bind"
MUC = "http://jabber.org/protocol/muc"
MUC_USER = "http://jabber.org/protocol/muc#user"
MUC_OWNER = "http://jabber.org/protocol/muc#owner"
DATA_FORMS = "jabber:x:data"
DELAY = "urn:xmpp:delay"
STANZA_ID = "urn:xmpp:sid:0"
PING = "urn:xmpp:ping"
SM = "urn:xmpp:sm:3"
MAM = "urn:xmpp:mam:2"
DISCO_INFO = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS = "http://jabber.org/protocol/disco#items"

MESSAGE, PRESENCE, IQ = (f"{{{CLIENT}}}{name}" for name in ("message", "presence", "iq"))
"""The tags of stanzas."""

BODY, SUBJECT, THREAD = (f"{{{CLIENT}}}{name}" for name in ("body", "subject", "thread"))
"""The tags of what a message says."""

STANZAS = frozenset((MESSAGE, PRESENCE, IQ))
"""What stream management counts (XEP-0198, section 4)."""

CONDITIONS = frozenset(
    (  # noqa: SIM905 - as a list it would take fifty lines
        "aborted account-disabled bad-format bad-namespace-prefix bad-request conflict "
        "connection-timeout credentials-expired encryption-required feature-not-implemented "
        "forbidden gone host-gone host-unknown improper-addressing incorrect-encoding "
        "internal-server-error invalid-authzid invalid-from invalid-mechanism invalid-namespace "
        "invalid-xml item-not-found jid-malformed malformed-request mechanism-too-weak "
        "not-acceptable not-allowed not-authorized not-well-formed policy-violation "
        "recipient-unavailable redirect registration-required remote-connection-failed "
        "remote-server-not-found remote-server-timeout reset resource-constraint restricted-xml "
        "see-other-host service-unavailable subscription-required system-shutdown "
        "temporary-auth-failure undefined-condition unexpected-request unsupported-encoding "
        "unsupported-feature unsupported-stanza-type unsupported-version"
    ).split()
)
"""The conditions of RFC 6120, sections 4.9.3, 6.5 and 8.3.3. Any other name was made up by
whoever sent the error, and counts as `undefined-condition`."""

CACHED_ADDRESSES = 256
"""How many parsed addresses are cached: without the cache, each event of an occupant would have
copies of the same texts."""

MAX_DIGITS = 9
"""Most digits of a number: counts of occupants, uptimes in seconds and limits have fewer."""

BRIDGE = "xmpp-debug-bridge"
"""The name by which a bridge is known in service discovery."""

HISTORY_ON_JOINING = 20
"""How many messages of the room's history we ask for on entering, for context."""


@dataclass(frozen=True)
class StanzaError:
    """What an `<error/>` says (RFC 6120, section 8.3)."""

    condition: str
    text: str | None = None
    venue: str | None = None
    """The new address, with the condition `gone`."""
    by: str | None = None
    """Who made the error, where it says so (RFC 6120, section 8.3.1)."""


class IqError(XmppError):
    """An IQ request was answered with an error."""

    def __init__(self, error: StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


def occupant_jid(room: str, nickname: str) -> str | None:
    """Return the prepared occupant JID; None if the nickname cannot be one."""
    return prepared(f"{room}/{nickname}")


def domain_of(jid: str) -> str:
    """Return the domain of a JID."""
    return jid.partition("/")[0].rpartition("@")[2]


def xml_of(element: Element | str) -> str:
    """Return an element as XML in the stream's namespace; a string is returned as it is."""
    return element if isinstance(element, str) else written(element, CLIENT)


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
    return None if len(jid) > MAX_JID_CHARACTERS else _address(jid)


@lru_cache(CACHED_ADDRESSES)
def _address(jid: str) -> Address | None:
    """Read an address that a server wrote.

    The resource is not prepared again. The server has prepared it, by tables that may differ from
    slixmpp's. By these tables a nickname could be invalid, which would hide its occupant, or become
    the nickname of another occupant.
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
    result = stanza.find(f"{{{MAM}}}result") if stanza.tag == MESSAGE else None
    if result is None or (archive := prepared(stanza.get("from", ""))) is None:
        return None
    return archive, result.get("queryid", ""), result


def error_of(stanza: Element) -> StanzaError:
    """Return the `<error/>` in `stanza`; `undefined-condition` where it has none."""
    error = stanza.find(f"{{{CLIENT}}}error")
    if error is None:
        return StanzaError("undefined-condition")
    condition, text = condition_of(error, STANZA_ERRORS)
    venue = error.findtext(f"{{{STANZA_ERRORS}}}gone") if condition == "gone" else None
    by = error.get("by", "")[:MAX_JID_CHARACTERS]
    return StanzaError(condition, text, venue or None, by or None)


def condition_of(element: Element, namespace: str) -> tuple[str, str | None]:
    """Return the condition and the text of an error; the text may be the host to go to."""
    text = element.findtext(f"{{{namespace}}}text")
    for child in element:
        child_namespace, _, name = child.tag[1:].partition("}")
        if child_namespace == namespace and name in CONDITIONS:
            host = child.text if name == "see-other-host" else None
            return name, text or host or None
    return "undefined-condition", text or None


def whole_number(text: str | None) -> int | None:
    """Return `text` as a number; None if it is none, or has more digits than `MAX_DIGITS`."""
    text = (text or "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        return None
    return int(text)


def join_presence(
    occupant: str, password: str | None, since: str | None, *, history: bool = True
) -> Element:
    """Return the presence that joins a room (XEP-0045, section 7.2); `since` is a time in UTC."""
    presence = Element(PRESENCE, {"to": occupant})
    extension = SubElement(presence, f"{{{MUC}}}x")
    asked = {"maxstanzas": str(HISTORY_ON_JOINING if history else 0)}
    if history and since is not None:
        asked = {"since": since}
    SubElement(extension, f"{{{MUC}}}history", asked)
    if password is not None:
        SubElement(extension, f"{{{MUC}}}password").text = password
    return presence


def leave_presence(occupant: str) -> Element:
    """Return the presence that leaves a room (XEP-0045, section 7.14)."""
    return Element(PRESENCE, {"to": occupant, "type": "unavailable"})


def groupchat_message(room: str, body: str, id_: str) -> Element:
    """Return a message to everybody in the room."""
    message = Element(MESSAGE, {"to": room, "type": "groupchat", "id": id_})
    SubElement(message, BODY).text = body
    return message


def iq_request(type_: str, to: str | None, id_: str, payload: Element) -> Element:
    """Return an IQ request around `payload`; `type_` is `get` or `set`."""
    iq = Element(IQ, {"type": type_, "id": id_} | ({} if to is None else {"to": to}))
    iq.append(payload)
    return iq


def ping() -> Element:
    """Return the payload of a ping (XEP-0199)."""
    return Element(f"{{{PING}}}ping")


def default_configuration() -> Element:
    """Return the payload that opens a new room with its defaults (XEP-0045, section 10.1.2)."""
    payload = Element(f"{{{MUC_OWNER}}}query")
    SubElement(payload, f"{{{DATA_FORMS}}}x", {"type": "submit"})
    return payload


def reply_to(iq: Element) -> Element:
    """Return the reply to an IQ request: a result to pings and disco#info, otherwise an error."""
    reply = Element(IQ, {"type": "result", "id": iq.get("id", "")})
    if sender := iq.get("from"):
        reply.set("to", sender)
    asked = iq[0].tag if len(iq) and iq.get("type") == "get" else ""
    if asked == f"{{{DISCO_INFO}}}query":
        info = SubElement(reply, f"{{{DISCO_INFO}}}query")
        identity = {"category": "client", "type": "bot", "name": BRIDGE}
        SubElement(info, f"{{{DISCO_INFO}}}identity", identity)
        for feature in (DISCO_INFO, MUC, PING):
            SubElement(info, f"{{{DISCO_INFO}}}feature", {"var": feature})
    elif asked != f"{{{PING}}}ping":
        reply.set("type", "error")
        error = SubElement(reply, f"{{{CLIENT}}}error", {"type": "cancel"})
        SubElement(error, f"{{{STANZA_ERRORS}}}service-unavailable")
    return reply
