"""What moderators and owners may do to a room (XEP-0045 sections 8, 9 and 10)."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.sandbox.room import (
    AFFILIATIONS,
    BANNED,
    CONFIGURED,
    KICKED,
    ROLES,
    Affiliation,
    Role,
    Room,
    role_of,
)
from bridge.sandbox.stanza import (
    DATA,
    MUC_ADMIN,
    MUC_OWNER,
    MUC_USER,
    answer,
    bare,
    bounce,
    build,
    prepared,
)

FORM_TYPE = "http://jabber.org/protocol/muc#roomconfig"
"""What the configuration form says it is (section 15.5.3)."""

ROOM_NAME = "muc#roomconfig_roomname"
"""The one thing about a room that its owner can configure here."""


@dataclass(frozen=True)
class RoleChange:
    """An occupant is to have another role; `none` is a kick."""

    nick: str
    role: Role
    reason: tuple[Element, ...]


@dataclass(frozen=True)
class AffiliationChange:
    """An account is to have another standing with the room; `outcast` is a ban."""

    account: str
    affiliation: Affiliation
    reason: tuple[Element, ...]


def administer(room: Room, iq: Element, query: Element) -> list[Element]:
    """Change roles and affiliations: kick, voice, ban and their like."""
    if iq.get("type") == "get":
        return bounce(iq, "feature-not-implemented")
    sender = iq.get("from", "")
    changes = [_change(room, item) for item in query.findall(MUC_ADMIN + "item")]
    accepted: list[RoleChange | AffiliationChange] = []
    for change in changes:
        # All of a list is judged before any of it is done.
        condition = _refusal(room, sender, change)
        if change is None or condition is not None:
            return bounce(iq, condition or "bad-request")
        accepted.append(change)
    if not accepted:
        return bounce(iq, "bad-request")
    return [told for change in accepted for told in _apply(room, sender, change)] + answer(iq)


def own(room: Room, iq: Element, query: Element) -> list[Element]:
    """Show and take the configuration form, or destroy the room."""
    if room.affiliation_of(iq.get("from", "")) != "owner":
        return bounce(iq, "forbidden")
    if iq.get("type") == "get":
        return answer(iq, build(MUC_OWNER + "query", {}, _form(room)))
    destruction, form = query.find(MUC_OWNER + "destroy"), query.find(DATA + "x")
    if destruction is not None:
        venue = {name: value for name, value in destruction.items() if name == "jid"}
        shown = build(MUC_USER + "destroy", venue, *_reason(destruction, MUC_OWNER))
        return room.destroy(shown) + answer(iq)
    if form is None or form.get("type") not in ("submit", "cancel"):
        return bounce(iq, "bad-request")
    name = form.findtext(f"{DATA}field[@var='{ROOM_NAME}']/{DATA}value")
    if form.get("type") == "cancel" or name is None or name == room.name:
        return answer(iq)
    room.name = name
    return room.notify(CONFIGURED) + answer(iq)


def _change(room: Room, item: Element) -> RoleChange | AffiliationChange | None:
    nick, reason = item.get("nick", ""), _reason(item, MUC_ADMIN)
    for role in ROLES:
        if item.get("role") == role:
            return RoleChange(nick, role, reason)
    named = room.occupants.get(nick)
    account = prepared(bare(item.get("jid") or (named.jid if named else "")))
    for affiliation in AFFILIATIONS:
        if account and item.get("affiliation") == affiliation and "role" not in item.attrib:
            return AffiliationChange(account, affiliation, reason)
    return None


def _refusal(room: Room, sender: str, change: RoleChange | AffiliationChange | None) -> str | None:
    """Why the sender may not do this, as a stanza error's condition."""
    power, admin = AFFILIATIONS.index(room.affiliation_of(sender)), AFFILIATIONS.index("admin")
    match change:
        case None:
            return "bad-request"
        case RoleChange(nick, role, _):
            actor, target = room.occupant_of(sender), room.occupants.get(nick)
            if actor is None or actor.role != "moderator":
                return "forbidden"
            if target is None:
                return "item-not-found"
            outranked = AFFILIATIONS.index(room.affiliation_of(target.jid)) > power
            among_moderators = role != "none" and "moderator" in (role, target.role)
            refused = outranked or (among_moderators and power < admin)
            return "not-allowed" if refused else None
        case AffiliationChange(account, affiliation, _):
            if power < admin:
                return "forbidden"
            held = AFFILIATIONS.index(room.affiliation_of(account))
            is_owner = room.affiliation_of(sender) == "owner"
            if not is_owner and max(held, AFFILIATIONS.index(affiliation)) >= admin:
                return "not-allowed"
            owners = [jid for jid, standing in room.affiliations.items() if standing == "owner"]
            # Without its last owner nobody could ever administer the room (section 10.4).
            return "conflict" if owners == [account] and affiliation != "owner" else None


def _apply(room: Room, sender: str, change: RoleChange | AffiliationChange) -> list[Element]:
    actor = room.occupant_of(sender)
    by = {"jid": bare(sender)} | ({"nick": actor.nick} if actor else {})
    details = (build(MUC_USER + "actor", by), *change.reason)
    match change:
        case RoleChange(nick, role, _):
            target = room.occupants.get(nick)
            if target is None:
                return []
            if role == "none":
                return room.remove(target, KICKED, details=details)
            return room.assign(target, role, details)
        case AffiliationChange(account, affiliation, _):
            room.affiliations[account] = affiliation
            told: list[Element] = []
            for occupant in [o for o in room.occupants.values() if bare(o.jid) == account]:
                if affiliation == "outcast":
                    told += room.remove(occupant, BANNED, details=details)
                else:
                    told += room.assign(occupant, role_of(affiliation), details)
            return told


def _reason(item: Element, namespace: str) -> tuple[Element, ...]:
    text = item.findtext(namespace + "reason")
    return () if text is None else (build(MUC_USER + "reason", text=text),)


def _form(room: Room) -> Element:
    def offered(var: str, kind: str, label: str, value: str) -> Element:
        attributes = {"var": var, "type": kind} | ({"label": label} if label else {})
        return build(DATA + "field", attributes, build(DATA + "value", text=value))

    return build(
        DATA + "x",
        {"type": "form"},
        offered("FORM_TYPE", "hidden", "", FORM_TYPE),
        offered(ROOM_NAME, "text-single", "Name of the room", room.name),
    )
