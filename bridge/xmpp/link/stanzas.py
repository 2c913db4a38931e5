"""Reads stanzas as events and builds the stanzas that the bridge sends.

A claim in a stanza counts only from an entity that may make it: a delay stamp and a stanza id only
from the room itself (XEP-0203, section 4; XEP-0359, section 6), presence only of its occupants.
The answers of service discovery and archives are read in `disco` and `archive`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from slixmpp.jid import JID, InvalidJID

from bridge.text import stamp_of
from bridge.wire.xmlstream import DamagedElement
from bridge.wire.xmlwriter import written
from bridge.xmpp.errors import XmppError
from bridge.xmpp.model.events import (
    AffiliationChanged,
    Event,
    MessageReceived,
    NicknameChanged,
    OccupantError,
    OccupantJoined,
    OccupantLeft,
    RoomConfigured,
    RoomDestroyed,
    RoomError,
    SendFailed,
    Source,
    StanzaDamaged,
    SubjectChanged,
)

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
REACTIONS = "urn:xmpp:reactions:0"
OCCUPANT_ID = "urn:xmpp:occupant-id:0"
ADDRESSES = "http://jabber.org/protocol/address"
RETRACTION = "{urn:xmpp:message-retract:0}retract"
MODERATION = "{urn:xmpp:message-moderate:0}moderated"
ENCRYPTION = "{urn:xmpp:eme:0}encryption"
STAMP = f"{{{DELAY}}}delay"
GIVEN_ID = f"{{{STANZA_ID}}}stanza-id"
DISCO_INFO = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS = "http://jabber.org/protocol/disco#items"

MESSAGE, PRESENCE, IQ = (f"{{{CLIENT}}}{name}" for name in ("message", "presence", "iq"))
"""The tags of stanzas."""

BODY, SUBJECT = (f"{{{CLIENT}}}{name}" for name in ("body", "subject"))
"""The tags of what a message says."""

STANZAS = frozenset((MESSAGE, PRESENCE, IQ))
"""What stream management counts (XEP-0198, section 4)."""

ENCRYPTIONS = {
    "eu.siacs.conversations.axolotl": "OMEMO",
    "urn:xmpp:omemo:1": "OMEMO",
    "urn:xmpp:omemo:2": "OMEMO",
    "urn:xmpp:openpgp:0": "OpenPGP",
    "jabber:x:encrypted": "Legacy OpenPGP",
    "urn:xmpp:otr:0": "OTR",
}
"""Names of encryptions by the namespaces of their elements (XEP-0380, section 6)."""

OTR = "?OTR:"
"""The beginning of a body encrypted with OTR, which has no element (XEP-0364, section 2)."""

METADATA = frozenset(
    {
        "urn:xmpp:delay",
        "jabber:x:delay",
        "urn:xmpp:sid:0",
        OCCUPANT_ID,
        "urn:xmpp:hints",
        "http://jabber.org/protocol/muc#user",
        ADDRESSES,
    }
)
"""Namespaces of elements that carry metadata of a message rather than content."""

MAX_PAYLOAD = 8
"""Element names listed of a message without a body: real ones have one or two."""

MAX_PAYLOAD_CHARACTERS = 100
"""Of one such name, and of the name of an encryption; real ones have up to 60."""

STATUS_CODE = re.compile("[0-9]{3}")
"""XEP-0045, section 15.6."""

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
"""The conditions of RFC 6120, sections 4.9.3, 6.5 and 8.3.3. Other names are foreign text."""

MAX_REACTIONS = 32
"""Reactions in one message: people send few, and each is a character or two."""

MAX_JID_CHARACTERS = 3_071
"""Of a JID (RFC 7622, section 3.1); slixmpp caches what it prepares, so no longer one may."""

MAX_PRESENCE_CHARACTERS = 1_000
"""Of each text in presence; the rest is cut off, since each occupant's presence is kept."""

CACHED_ADDRESSES = 256
"""Parsed addresses that are cached, so that all events of an occupant share its strings."""

HISTORY_ON_JOINING = 20
"""Messages of the room's history asked for on entering, for context."""


@dataclass(frozen=True)
class StanzaError:
    """What an `<error/>` says (RFC 6120, section 8.3)."""

    condition: str
    text: str | None = None
    venue: str | None = None
    """With `gone`: the new address."""


class IqError(XmppError):
    """An IQ request was answered with an error."""

    def __init__(self, error: StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


def prepared(jid: str) -> str | None:
    """Return a JID prepared for comparison (RFC 7622); None if it is invalid."""
    if len(jid) > MAX_JID_CHARACTERS:
        return None
    try:
        return str(JID(jid))
    except (InvalidJID, UnicodeError):  # the latter for half a surrogate pair
        return None


def occupant_jid(room: str, nickname: str) -> str | None:
    """Return the prepared occupant JID; None if the nickname cannot be one."""
    return prepared(f"{room}/{nickname}")


def xml_of(element: Element | str) -> str:
    """Return an element as XML in the stream's namespace; a string is returned as it is."""
    if isinstance(element, str):
        return element
    return written(element, CLIENT)


def read(stanza: Element, *, room: str, own: str, gives_ids: bool = True) -> Iterator[Event]:
    """Yield the events in `stanza` from `room`; `own` is our occupant JID, both prepared.

    Unless the room `gives_ids`, those in its messages are anybody's, and left out.
    """
    address = sender_of(stanza)
    if address is None:
        return
    sender, bare, nickname = address
    if isinstance(stanza, DamagedElement) and bare == room:
        yield StanzaDamaged(sender, nickname, stanza.reason)
    if stanza.tag == MESSAGE:
        if stanza.get("type") == "error":
            error, id_ = error_of(stanza), stanza.get("id")
            # All occupants know the id; only the room itself can bounce a message.
            if sender == room and id_:
                yield SendFailed(id_, error.condition, error.text)
            elif bare == room and nickname:
                yield OccupantError(sender, nickname, error.condition, error.text, id_)
        elif bare == room:
            yield from _read_message(stanza, sender, nickname, own, gives_ids=gives_ids)
    elif stanza.tag == PRESENCE and bare == room:
        yield from _read_presence(stanza, sender, nickname, own)


class Address(NamedTuple):
    """A prepared JID and its parts."""

    jid: str
    bare: str
    resource: str


def sender_of(stanza: Element) -> Address | None:
    """Return the address in `from`; None without a valid one."""
    jid = stanza.get("from", "")
    return None if len(jid) > MAX_JID_CHARACTERS else _address(jid)


@lru_cache(CACHED_ADDRESSES)
def _address(jid: str) -> Address | None:
    valid = prepared(jid)
    if valid is None:
        return None
    bare, _, resource = valid.partition("/")
    return Address(valid, bare, resource)


def archive_result(stanza: Element) -> tuple[str, str, Element] | None:
    """Return the archive's address, the query's id and the result in a message (XEP-0313).

    None for any other stanza.
    """
    result = stanza.find(f"{{{MAM}}}result") if stanza.tag == MESSAGE else None
    archive = None if result is None else prepared(stanza.get("from", ""))
    if result is None or archive is None:
        return None
    return archive, result.get("queryid", ""), result


def error_of(stanza: Element) -> StanzaError:
    """Return the `<error/>` in `stanza`; `undefined-condition` where it has none."""
    error = stanza.find(f"{{{CLIENT}}}error")
    if error is None:
        return StanzaError("undefined-condition")
    condition, text = condition_of(error, STANZA_ERRORS)
    venue = error.findtext(f"{{{STANZA_ERRORS}}}gone") if condition == "gone" else None
    return StanzaError(condition, text, venue or None)


def condition_of(element: Element, namespace: str) -> tuple[str, str | None]:
    """Return the condition and the text of an error; the text may be the host to go to."""
    text = element.findtext(f"{{{namespace}}}text")
    for child in element:
        child_namespace, _, name = child.tag[1:].partition("}")
        if child_namespace == namespace and name in CONDITIONS:
            host = child.text if name == "see-other-host" else None
            return name, text or host or None
    return "undefined-condition", text or None


def _read_message(
    stanza: Element, sender: str, nickname: str, own: str, *, gives_ids: bool
) -> Iterator[Event]:
    type_ = stanza.get("type", "normal")
    body = stanza.findtext(BODY)
    subject = stanza.find(SUBJECT)
    if not nickname:
        yield from _read_notice(stanza)
    if type_ == "groupchat" and body is None and subject is not None:
        yield SubjectChanged(subject.text or "", nickname or None)
    room = sender.partition("/")[0]
    stamp = given = None
    for child in reversed(stanza):  # the first of several counts
        if child.tag == STAMP and child.get("from") == room:
            stamp = stamp_of(child.get("stamp"))
        elif child.tag == GIVEN_ID and child.get("by") == room:
            given = child.get("id")
    message = MessageReceived(
        from_=sender,
        sender=nickname,
        body=body or "",
        type="groupchat" if type_ == "groupchat" else "chat",
        id=stanza.get("id"),
        stanza_id=given if gives_ids else None,
        delayed_from=stamp,
        source=Source.LIVE if stamp is None else Source.HISTORY,
        own=sender == own,
        encrypted=_encrypted(stanza) or ("OTR" if (body or "").startswith(OTR) else None),
    )
    referring = _with_references(message, stanza)
    if body is None and referring is message:
        if not nickname or (type_ == "groupchat" and subject is not None):
            return
        payload = () if message.encrypted else _payload(stanza)
        if not (message.encrypted or payload):
            return
        referring = replace(message, payload=payload)
    yield referring


def occupant_id(stanza: Element) -> str | None:
    """Return the id that the room gives the sender's account (XEP-0421)."""
    found = stanza.find(f"{{{OCCUPANT_ID}}}occupant-id")
    return None if found is None else found.get("id") or None


def original_senders(stanza: Element) -> set[str]:
    """Return the accounts that the room's history names as senders (XEP-0045, section 7.2.13)."""
    addresses = stanza.iterfind(f"{{{ADDRESSES}}}addresses/{{{ADDRESSES}}}address[@type='ofrom']")
    named = (prepared(one.get("jid", "")) or "" for one in addresses)
    return {jid.partition("/")[0] for jid in named}


def _encrypted(stanza: Element) -> str | None:
    """Return the name of a message's encryption, by XEP-0380 or by its elements."""
    found = None
    for child in stanza:
        if child.tag == ENCRYPTION and (namespace := child.get("namespace")):
            name = ENCRYPTIONS.get(namespace) or child.get("name") or namespace
            return name[:MAX_PAYLOAD_CHARACTERS]
        found = found or ENCRYPTIONS.get(child.tag[1:].partition("}")[0])
    return found


def _payload(stanza: Element) -> tuple[str, ...]:
    """Return the names of a message's elements, without metadata."""
    names = []
    for child in stanza:
        namespace, _, name = child.tag.rpartition("}")
        if namespace[1:] == CLIENT and name not in {"thread", "error"}:
            names.append(name)
        elif namespace[1:] != CLIENT and namespace[1:] not in METADATA:
            names.append(f"{name} ({namespace[1:]})")
    names = [name[:MAX_PAYLOAD_CHARACTERS] for name in dict.fromkeys(names)]
    more = len(names) - MAX_PAYLOAD
    return tuple(names[:MAX_PAYLOAD]) + ((f"... and {more} more",) if more > 0 else ())


def _with_references(message: MessageReceived, stanza: Element) -> MessageReceived:
    """Return `message` with what its stanza says of another message; itself if that is nothing."""
    # Only the room itself moderates (XEP-0425).
    retractions = (RETRACTION,) if message.sender else (RETRACTION, MODERATION)
    for child in stanza:
        id_ = child.get("id")
        if not id_:
            continue
        match child.tag:
            case "{urn:xmpp:message-correct:0}replace":
                message = replace(message, replaces=id_)
            case "{urn:xmpp:reply:0}reply":
                message = replace(message, reply_to=id_)
            case "{urn:xmpp:reactions:0}reactions":
                found = child.findall(f"{{{REACTIONS}}}reaction")[:MAX_REACTIONS]
                reactions = tuple(one.text or "" for one in found)
                message = replace(message, reacts_to=id_, reactions=reactions)
            case "{urn:xmpp:message-retract:1}retract":
                message = replace(message, retracts=id_)
            case "{urn:xmpp:fasten:0}apply-to" if any(inner.tag in retractions for inner in child):
                message = replace(message, retracts=id_)
    return message


def _read_notice(stanza: Element) -> Iterator[Event]:
    """Yield the room's notices of changes to its configuration and to affiliations."""
    extension = stanza.find(f"{{{MUC_USER}}}x")
    if extension is None:
        return
    if codes := _codes(extension):
        yield RoomConfigured(codes)
    item = extension.find(f"{{{MUC_USER}}}item")
    if (jid := _real_jid(item)) and (held := _attribute(item, "affiliation", "")):
        yield AffiliationChanged(jid, held, _reason(item), _actor(item))


def _codes(extension: Element) -> frozenset[int]:
    return frozenset(
        int(code)
        for status in extension.iterfind(f"{{{MUC_USER}}}status")
        if STATUS_CODE.fullmatch(code := status.get("code", ""))
    )


def _reason(item: Element | None) -> str | None:
    return None if item is None else _short(item.findtext(f"{{{MUC_USER}}}reason"))


def _real_jid(item: Element | None) -> str | None:
    jid = None if item is None else item.get("jid")
    return jid if jid and len(jid) <= MAX_JID_CHARACTERS else None


def _short(text: str | None) -> str | None:
    return text[:MAX_PRESENCE_CHARACTERS] if text else None


def _actor(item: Element | None) -> str | None:
    actor = None if item is None else item.find(f"{{{MUC_USER}}}actor")
    return None if actor is None else _short(actor.get("nick") or actor.get("jid"))


def _read_presence(stanza: Element, sender: str, nickname: str, own: str) -> Iterator[Event]:
    type_ = stanza.get("type")
    if type_ == "error":
        error = error_of(stanza)
        yield RoomError(error.condition, error.text, error.venue)
        return
    extension = stanza.find(f"{{{MUC_USER}}}x")
    if extension is None or not nickname:
        return
    item = extension.find(f"{{{MUC_USER}}}item")
    codes = _codes(extension)
    is_own = sender == own or 110 in codes
    status_text = _short(stanza.findtext(f"{{{CLIENT}}}status"))
    if type_ is None:
        yield OccupantJoined(
            from_=sender,
            sender=nickname,
            role=_attribute(item, "role", "none"),
            affiliation=_attribute(item, "affiliation", "none"),
            show=_short(stanza.findtext(f"{{{CLIENT}}}show")),
            status=status_text,
            jid=_real_jid(item),
            self_=is_own,
            codes=codes,
            reason=_reason(item),
            actor=_actor(item),
        )
    elif type_ == "unavailable":
        new_nickname = None if item is None else _prepared_nickname(sender, item.get("nick", ""))
        destroy = extension.find(f"{{{MUC_USER}}}destroy")
        if 303 in codes and new_nickname:
            yield NicknameChanged(sender, nickname, new_nickname, is_own)
        elif destroy is not None and is_own:
            yield RoomDestroyed(_reason(destroy), _real_jid(destroy))
        else:
            yield OccupantLeft(
                from_=sender,
                sender=nickname,
                self_=is_own,
                codes=codes,
                reason=_reason(item),
                actor=_actor(item),
                status=status_text,
                jid=_real_jid(item),
            )


def _prepared_nickname(sender: str, nickname: str) -> str | None:
    """Return a nickname prepared as in the `from` of presence; None if it is invalid."""
    occupant = occupant_jid(sender.partition("/")[0], nickname) if nickname else None
    return None if occupant is None else occupant.partition("/")[2]


def _attribute(item: Element | None, name: str, default: str) -> str:
    return default if item is None else item.get(name, default)[:MAX_PRESENCE_CHARACTERS]


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
    attributes = {"type": type_, "id": id_} | ({} if to is None else {"to": to})
    iq = Element(IQ, attributes)
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


def bind_request(resource: str) -> Element:
    """Return the payload that asks for a resource (RFC 6120, section 7.7)."""
    payload = Element(f"{{{BIND}}}bind")
    SubElement(payload, f"{{{BIND}}}resource").text = resource
    return payload


def sm_enable(seconds: int) -> Element:
    """Return the request to enable stream management (XEP-0198, section 3)."""
    return Element(f"{{{SM}}}enable", {"resume": "true", "max": str(seconds)})


def sm_resume(id_: str, handled: int) -> Element:
    """Return the request to resume a session (XEP-0198, section 5)."""
    return Element(f"{{{SM}}}resume", {"previd": id_, "h": str(handled)})


def sm_acknowledgement(handled: int) -> Element:
    """Return the acknowledgement of the stanzas that were processed (XEP-0198, section 4)."""
    return Element(f"{{{SM}}}a", {"h": str(handled)})


def reply_to(iq: Element) -> Element:
    """Return the reply to an IQ request: a result to pings and disco#info, otherwise an error."""
    reply = Element(IQ, {"type": "result", "id": iq.get("id", "")})
    if sender := iq.get("from"):
        reply.set("to", sender)
    asked = iq[0].tag if len(iq) and iq.get("type") == "get" else ""
    if asked == f"{{{DISCO_INFO}}}query":
        info = SubElement(reply, f"{{{DISCO_INFO}}}query")
        identity = {"category": "client", "type": "bot", "name": "xmpp-debug-bridge"}
        SubElement(info, f"{{{DISCO_INFO}}}identity", identity)
        for feature in (DISCO_INFO, MUC, PING):
            SubElement(info, f"{{{DISCO_INFO}}}feature", {"var": feature})
    elif asked != f"{{{PING}}}ping":
        reply.set("type", "error")
        error = SubElement(reply, f"{{{CLIENT}}}error", {"type": "cancel"})
        SubElement(error, f"{{{STANZA_ERRORS}}}service-unavailable")
    return reply
