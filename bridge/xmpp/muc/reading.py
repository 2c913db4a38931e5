"""Reads stanzas of a room as events.

A claim in a stanza counts only from an entity that may make it: a stanza id only from the room
itself (XEP-0359, section 6), presence only from its occupants. A delay names the entity that made
it; `intake` decides when a delay counts. The answers of service discovery and archives are read in
`queries.disco` and `archive`.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any
from xml.etree.ElementTree import Element

from bridge.text import iso_of, stamp_of
from bridge.wire import names
from bridge.wire.meaning import ENCRYPTIONS
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model import events

OCCUPANT_ID = "urn:xmpp:occupant-id:0"
ADDRESSES = "http://jabber.org/protocol/address"
RETRACTION = "{urn:xmpp:message-retract:0}retract"
MODERATIONS = frozenset(f"{{urn:xmpp:message-moderate:{version}}}moderated" for version in (0, 1))
ENCRYPTION = "{urn:xmpp:eme:0}encryption"
CAPTCHA_FOR = "{jabber:x:data}x/{jabber:x:data}field[@var='from']/{jabber:x:data}value"
GIVEN_ID = f"{{{names.STANZA_ID}}}stanza-id"
ID_OF_OCCUPANT = f"{{{OCCUPANT_ID}}}occupant-id"
STATUS = f"{{{names.CLIENT}}}status"


MARKS = {
    "{urn:xmpp:fallback:0}fallback": "fallback",
    "{urn:xmpp:feature-fallback:0}fallback": "fallback",
    "{http://jabber.org/protocol/xhtml-im}html": "xhtml",
}
"""Elements because of which a client may show something else than the body, and the names that
users see for them."""

ARMOURS = {"?OTR:": "OTR", "-----BEGIN PGP MESSAGE-----": "OpenPGP"}
"""How a body begins that is encrypted itself, without an element (XEP-0364, section 4; RFC 4880,
section 6.2), and the name of the encryption."""

PASSED_ON = frozenset({f"{{{names.MUC_USER}}}invite", f"{{{names.MUC_USER}}}decline"})
"""A room passes invitations and their refusals on in its own name. These tags in them say who wrote
them."""

METADATA = frozenset(
    {
        names.DELAY,
        names.FORMER_DELAY,
        names.STANZA_ID,
        OCCUPANT_ID,
        "urn:xmpp:hints",
        names.MUC_USER,
        ADDRESSES,
    }
)
"""Namespaces of elements that carry metadata of a message rather than content."""

USUAL = frozenset({names.BODY, GIVEN_ID, ID_OF_OCCUPANT})
"""The children that most messages have. What few messages have is looked for in others only, since
a room may send thousands of messages in a second."""

MAX_PAYLOAD = 8
"""Most names of elements that we list for a message without a body. Real ones have one or two."""

MAX_PRESENCE_PAYLOAD = 20
"""Most names of elements that we list for a presence. Real ones have up to ten."""

HAT_TITLES = ("title", "displayName", "name", "uri")
"""The attributes that may have the title of a hat, best first; the last two are addresses."""

MAX_PAYLOAD_CHARACTERS = 100
"""Most characters of the name of an element or an encryption, and of a hat; real ones have up to
60."""

OF_STREAM = f"{{{names.CLIENT}}}"
"""The beginning of the tags in the stream's own namespace, which are no extensions."""

CACHED_PAYLOADS = 256
"""Most lists of names that are kept to be shared among occupants."""

MAX_REACTIONS = 32
"""Most reactions in one message: people send few, and each is a character or two."""

MAX_PRESENCE_CHARACTERS = 1_000
"""Most characters of each text in presence. The rest is cut off, since each presence is kept."""


def read(
    stanza: Element, *, room: str, own: str, gives_ids: bool = True, names_accounts: bool = False
) -> Iterator[events.Event]:
    """Yield the events in `stanza`; `room` and `own`, our occupant JID, are prepared.

    `own` is empty while we are not inside. Then the room's service may have sent the stanza, too.
    Unless the room `gives_ids`, stanza ids are left out, since any occupant may have put them into
    a message. Unless it `names_accounts` by occupant ids (XEP-0421), these are left out, too.
    """
    address = stanzas.sender_of(stanza)
    if address is None:
        return
    sender, bare, nickname = address
    account_id = _occupant_id(stanza) if names_accounts else None
    if isinstance(stanza, DamagedElement) and bare == room:
        yield events.StanzaDamaged(sender, nickname, stanza.reason)
    if stanza.tag == names.MESSAGE:
        if stanza.get("type") == "error":
            error, id_ = names.error_of(stanza), stanza.get("id")
            # All occupants know the id; only the room itself can bounce a message.
            if sender == room:
                yield events.SendFailed(id_ or "", error.condition, error.text, error.by)
            elif bare == room and nickname:
                yield events.OccupantError(sender, nickname, error.condition, error.text, id_)
        elif bare == room and (nickname or not _is_passed_on(stanza)):
            yield from _read_message(stanza, address, own, account_id, gives_ids=gives_ids)
        elif sender == room.partition("@")[2] and _is_kept_out_by(stanza, room):
            yield events.RoomError(events.CAPTCHA_REQUIRED, stanza.findtext(names.BODY))
    elif stanza.tag == names.PRESENCE and bare == room:
        yield from _read_presence(stanza, sender, nickname, own, account_id)


def _is_passed_on(stanza: Element) -> bool:
    """Whether a message in the room's name is an invitation, or declines one.

    Servers pass on everything that the person who invites or declines puts into it. ejabberd passes
    it on with any message type (XEP-0045, section 7.8.2).
    """
    return not PASSED_ON.isdisjoint(child.tag for child in stanza.iterfind(f"{names.EXTENSION}/*"))


def _is_kept_out_by(stanza: Element, room: str) -> bool:
    """Whether a message of the room's service wants a CAPTCHA solved for this room.

    The form may name the address that we wrote to (XEP-0158, section 3.1). If it names none, it
    concerns every room of the service that we are entering.
    """
    challenge = stanza.find(names.CAPTCHA)
    if challenge is None:
        return False
    return names.bare(prepared(challenge.findtext(CAPTCHA_FOR, room)) or "") == room


def _read_message(
    stanza: Element, address: stanzas.Address, own: str, account_id: str | None, *, gives_ids: bool
) -> Iterator[events.Event]:
    sender, room, nickname = address
    type_ = stanza.get("type", "normal")
    is_public = type_ == "groupchat"
    body, languages = _in_one_language(stanza, names.BODY)
    subject = _new_subject(stanza, nickname) if is_public else None
    # A room lets a user in who solves a CAPTCHA (XEP-0158, section 3). Some rooms send the CAPTCHA
    # from the occupant JID that we asked for. Once we are inside, an occupant may have sent such a
    # message.
    from_room = not nickname or (not own and not is_public)
    if from_room and stanza.find(names.CAPTCHA) is not None:
        yield events.RoomError(events.CAPTCHA_REQUIRED, body)
        return
    if not nickname:
        yield from _read_notice(stanza)
    if subject is not None:
        yield events.SubjectChanged(subject, nickname or None)
        body = None
    ids = [child.get("id") for child in stanza.findall(GIVEN_ID) if child.get("by") == room]
    given = next(filter(None, ids), None)
    further = [child for child in stanza if child.tag not in USUAL]
    stamp, by = _stamp(further, room)
    foreign = stamp is not None and by != room
    armours = (name for begins, name in ARMOURS.items() if body and body.startswith(begins))
    encrypted = _encrypted(further) or next(armours, None)
    references = _references(further, address)
    payload: tuple[str, ...] = ()
    if body is None and not references:
        if not nickname or subject is not None:
            return
        payload = () if encrypted else _payload(further)
        if not (encrypted or payload):
            return
    yield events.MessageReceived(
        from_=sender,
        sender=nickname,
        body=body or "",
        type="groupchat" if is_public else "chat",
        id=stanza.get("id"),
        # In private messages, servers do not remove stanza ids that others put there.
        stanza_id=given if gives_ids and is_public else None,
        delayed_from=stamp,
        stamped_at=stamp if foreign else None,
        stamped_by=by or None if foreign else None,
        source=events.Source.LIVE if stamp is None else events.Source.HISTORY,
        own=sender == own,
        # In private messages, servers do not remove occupant ids that others put there.
        occupant_id=account_id if is_public else None,
        encrypted=encrypted,
        payload=payload,
        languages=languages,
        marked=() if body is None else _marks(further),
        **references,
    )


def _stamp(children: Iterable[Element], room: str) -> tuple[str | None, str]:
    """Return a message's stamp and who made it: the room's if there is one, else the last.

    ejabberd does not remove stamps that others wrote in the room's name, even if the name is in
    another case. If such a stamp is no time, ejabberd adds its own after it, so the room's last
    stamp counts. If it is a time, ejabberd adds none.
    """
    last: tuple[str | None, str] = (None, "")
    for child in children:
        stamp = child.get("stamp")
        if stamp is None or child.tag not in {names.STAMP, names.FORMER_STAMP}:
            continue
        if child.tag == names.FORMER_STAMP:
            stamp = iso_of(f"{stamp}Z") or stamp
        by = child.get("from", "")[: names.MAX_JID_CHARACTERS]
        by = room if prepared(by) == room else by
        if by == room or last[1] != room:
            last = stamp_of(stamp[:MAX_PRESENCE_CHARACTERS]), by
    return last


def _marks(children: Iterable[Element]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([MARKS[child.tag] for child in children if child.tag in MARKS]))


def _in_one_language(stanza: Element, tag: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the text of the child `tag` that clients show, and the languages of the others.

    Clients show the first of these that exists:

    - the child without `xml:lang` (RFC 6121, section 5.2.3)
    - the child in the stanza's language
    - the child in English
    - the first child

    The text is None if there is no such child.
    """
    children = stanza.findall(tag)
    if len(children) < 2:
        return (children[0].text or "" if children else None), ()
    usual = stanza.get(names.LANGUAGE, "")

    def strangeness(child: Element) -> tuple[bool, bool, bool]:
        language = child.get(names.LANGUAGE, "").casefold()
        return language != "", language != usual.casefold(), language.partition("-")[0] != "en"

    seen = min(children, key=strangeness)
    others = (it.get(names.LANGUAGE) or usual or "und" for it in children if it is not seen)
    return seen.text or "", _bounded(others)


def _new_subject(stanza: Element, nickname: str) -> str | None:
    """Return the subject that a message in the room sets; None if it sets none.

    A message with a body or a thread sets none (XEP-0045, section 8.1), since any occupant may send
    one. There is an exception: old rooms send the subject in their own name with a body beside it
    that says who set it.
    """
    talks = nickname and stanza.find(names.BODY) is not None
    sets = not talks and stanza.find(names.THREAD) is None
    return _in_one_language(stanza, names.SUBJECT)[0] if sets else None


def _occupant_id(stanza: Element) -> str | None:
    """Return the id of the sender's account (XEP-0421)."""
    element = stanza.find(ID_OF_OCCUPANT)
    return None if element is None else _short(element.get("id"))


def original_senders(stanza: Element) -> set[str]:
    """Return the accounts that the room's history names as senders (XEP-0045, section 7.2.13)."""
    addresses = stanza.iterfind(f"{{{ADDRESSES}}}addresses/{{{ADDRESSES}}}address[@type='ofrom']")
    named = (prepared(address.get("jid", "")) or "" for address in addresses)
    return {names.bare(jid) for jid in named}


def _encrypted(children: Iterable[Element]) -> str | None:
    """Return the name of a message's encryption, by XEP-0380 or by its elements."""
    name = None
    for child in children:
        if child.tag == ENCRYPTION and (namespace := child.get("namespace")):
            declared = ENCRYPTIONS.get(namespace) or child.get("name") or namespace
            return declared[:MAX_PAYLOAD_CHARACTERS]
        name = name or ENCRYPTIONS.get(names.split(child.tag)[0])
    return name


@lru_cache(CACHED_PAYLOADS)
def _shared(payload: tuple[str, ...]) -> tuple[str, ...]:
    """Return equal names as the same tuple: thousands of occupants may have the same client."""
    return payload


def _payload(elements: Iterable[Element], most: int = MAX_PAYLOAD) -> tuple[str, ...]:
    """Return the names of the elements of a stanza, without metadata, and the titles of hats.

    A hat is a title that the room's owner gives an occupant (XEP-0317). Each revision has a
    namespace and an attribute of its own.
    """
    payload = []
    for child in elements:
        namespace, name = names.split(child.tag)
        if name == "hats":
            titles = (next(filter(None, map(hat.get, HAT_TITLES)), "") for hat in child)
            payload += [f"hat: {title}" for title in titles if title]
        if namespace == names.CLIENT and name not in {"thread", "error"}:
            payload.append(name)
        elif namespace != names.CLIENT and namespace not in METADATA:
            payload.append(f"{name} ({namespace})")
    return _bounded(payload, most)


def _bounded(payload: Iterable[str], most: int = MAX_PAYLOAD) -> tuple[str, ...]:
    """Return each name once, at most `most` names, each cut to `MAX_PAYLOAD_CHARACTERS`."""
    each = [name[:MAX_PAYLOAD_CHARACTERS] for name in dict.fromkeys(payload)]
    more = len(each) - most
    return tuple(each[:most]) + ((f"... and {more} more",) if more > 0 else ())


def _references(children: Iterable[Element], sender: stanzas.Address) -> dict[str, Any]:
    """Return the fields of a message in which it refers to other messages; empty without any."""
    # Only the room itself moderates (XEP-0425).
    retractions = {RETRACTION} if sender.resource else {RETRACTION, *MODERATIONS}
    fields: dict[str, Any] = {}
    for child in children:
        id_ = child.get("id")
        if not id_:
            continue
        match child.tag:
            case names.REPLACE:
                fields["replaces"] = id_
            case "{urn:xmpp:reply:0}reply":
                fields["reply_to"] = id_
            case "{urn:xmpp:reactions:0}reactions":
                listed = child.findall(f"{{{names.REACTIONS}}}reaction")[:MAX_REACTIONS]
                reactions = tuple(reaction.text or "" for reaction in listed)
                fields |= {"reacts_to": id_, "reactions": reactions}
            case "{urn:xmpp:message-retract:1}retract":
                fields |= {"retracts": id_} | _moderation(child, sender)
            case "{urn:xmpp:fasten:0}apply-to" if any(inner.tag in retractions for inner in child):
                fields |= {"retracts": id_} | _moderation(child, sender)
    return fields


def _moderation(retraction: Element, sender: stanzas.Address) -> dict[str, str | None]:
    """Return who took a message back as moderator, and why; empty unless the room says so.

    XEP-0425 has had two shapes: `moderated` is in `apply-to` and has the reason in it, or is in
    `retract` beside the reason.
    """
    moderated = next((inner for inner in retraction if inner.tag in MODERATIONS), None)
    if sender.resource or moderated is None:
        return {}
    by = moderated.get("by", "")
    bare, _, nickname = by.partition("/")
    reasons = (it.text for it in (*moderated, *retraction) if it.tag.endswith("}reason"))
    return {
        "moderated_by": _short(nickname if prepared(bare) == sender.bare else by),
        "reason": _short(next(reasons, None)),
    }


def _read_notice(stanza: Element) -> Iterator[events.Event]:
    """Yield the room's notices of changes to its configuration and to affiliations."""
    extension = stanza.find(names.EXTENSION)
    if extension is None:
        return
    if codes := names.codes_of(stanza):
        yield events.RoomConfigured(codes)
    item = _item(extension)
    if (jid := _real_jid(item)) and (held := _attribute(item, "affiliation", "")):
        yield events.AffiliationChanged(jid, held, _reason(item), _actor(item))


def _item(extension: Element) -> Element:
    """Return the `<item/>` that describes an occupant; an empty element if there is none."""
    item = extension.find(names.ITEM)
    return Element(names.ITEM) if item is None else item


def _reason(item: Element) -> str | None:
    return _short(item.findtext(f"{{{names.MUC_USER}}}reason"))


def _real_jid(item: Element) -> str | None:
    jid = item.get("jid")
    return jid if jid and len(jid) <= names.MAX_JID_CHARACTERS else None


def _short(text: str | None) -> str | None:
    return text[:MAX_PRESENCE_CHARACTERS] if text else None


def _actor(item: Element) -> str | None:
    actor = item.find(f"{{{names.MUC_USER}}}actor")
    return None if actor is None else _short(actor.get("nick") or actor.get("jid"))


def _read_presence(
    stanza: Element, sender: str, nickname: str, own: str, account_id: str | None
) -> Iterator[events.Event]:
    type_ = stanza.get("type")
    if type_ == "error":
        error = names.error_of(stanza)
        yield events.RoomError(error.condition, error.text, error.venue)
        return
    if not nickname:
        return
    # Some gateways leave the extension out, and a damaged one cannot be read. We report that the
    # occupant came or went all the same.
    extension = None if isinstance(stanza, DamagedElement) else stanza.find(names.EXTENSION)
    if extension is None:
        extension = Element(names.EXTENSION)
    item = _item(extension)
    codes = names.codes_of(stanza)
    is_own = sender == own or 110 in codes
    status_text = _short(_in_one_language(stanza, STATUS)[0])
    if type_ is None:
        foreign = (child for child in stanza if not child.tag.startswith(OF_STREAM))
        extensions = sorted(foreign, key=attrgetter("tag"))  # another order is no change
        yield events.OccupantJoined(
            from_=sender,
            sender=nickname,
            role=_attribute(item, "role", events.UNKNOWN),
            affiliation=_attribute(item, "affiliation", events.UNKNOWN),
            show=_short(stanza.findtext(f"{{{names.CLIENT}}}show")),
            status=status_text,
            jid=_real_jid(item),
            self_=is_own,
            codes=codes,
            reason=_reason(item),
            actor=_actor(item),
            occupant_id=account_id,
            payload=_shared(_payload(extensions, MAX_PRESENCE_PAYLOAD)),
            sessions=len({it.get("jid") for it in extension.iterfind(names.ITEM)} - {None}),
        )
    elif type_ == "unavailable":
        new_nickname = item.get("nick", "")
        destroy = extension.find(f"{{{names.MUC_USER}}}destroy")
        if 303 in codes and 0 < len(new_nickname) <= names.MAX_JID_CHARACTERS:
            yield events.NicknameChanged(
                sender, nickname, new_nickname, is_own, _real_jid(item), account_id
            )
        elif destroy is not None and (is_own or not own):
            yield events.RoomDestroyed(_reason(destroy), _real_jid(destroy))
        else:
            yield events.OccupantLeft(
                from_=sender,
                sender=nickname,
                self_=is_own,
                codes=codes,
                reason=_reason(item),
                actor=_actor(item),
                status=status_text,
                jid=_real_jid(item),
                occupant_id=account_id,
            )


def _attribute(item: Element, name: str, default: str) -> str:
    return item.get(name, default)[:MAX_PRESENCE_CHARACTERS]
