"""Serves one chat room (XEP-0045): takes stanzas, and returns the stanzas to send.

A room may have a resident that answers messages. All occupants see each other's real JIDs;
tests/sandbox lists the other differences from Prosody.
"""

import re
import secrets
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from bridge.sandbox import configuration
from bridge.sandbox.stanza import (
    PART_LIMIT,
    Deliveries,
    RefusedError,
    disco,
    error,
    refuse,
    reply,
    tag,
)
from bridge.wire import names
from bridge.wire.xmlwriter import escaped, written

HISTORY_LIMIT = 100
"""Most messages that a room keeps for occupants who enter later."""

CONTENT_LIMIT = 262_144
"""Most characters of XML in a stanza that the room passes on. The room writes it anew, with the
namespace in each name: 250 kB can become 11 MB, more than a client can be sent at once."""

AFFILIATIONS = ("outcast", "none", "member", "admin", "owner")
ROLES = ("none", "visitor", "participant", "moderator")
RANKS = {name: rank for rank, name in [*enumerate(AFFILIATIONS, -1), *enumerate(ROLES)]}
"""The rank of each affiliation among affiliations, and of each role among roles (section 5)."""

ADMINS = ("admin", "owner")
"""Affiliations whose holders moderate a room, and decide who else does."""

FEATURES = (names.MUC, names.STANZA_ID, "muc_nonanonymous")
RESERVED = (names.JOIN, names.EXTENSION, names.STAMP, f"{{{names.STANZA_ID}}}stanza-id")
"""Elements that receivers believe only if the room wrote them; they are removed from stanzas."""


Message = tuple[dict[str, str], str]
"""The attributes of a message except its recipient, and its content as XML."""


@dataclass(frozen=True)
class Occupant:
    """A client in the room, or its resident."""

    nick: str
    jid: str
    role: str
    presence: str = ""
    """The content of the occupant's presence, as XML."""

    @property
    def account(self) -> str:
        """The bare JID of the occupant."""
        return names.bare(self.jid)


class Room:
    """The room `jid`. Its owner is `owner`, or else the account that enters first."""

    def __init__(self, jid: str, owner: str = "", resident: str = "", subject: str = "") -> None:
        self.jid = jid
        self._affiliations = {owner: "owner"} if owner else {}
        self._reasons: dict[str, str] = {}
        """The reason for an account's affiliation, as an XML element, by bare JID."""
        self._resident = resident
        self._subject: Message = (self._head("", "groupchat"), tag("subject", escaped(subject)))
        self._history: deque[tuple[datetime, Message]] = deque(maxlen=HISTORY_LIMIT)
        self.occupants: dict[str, Occupant] = {}
        if resident:
            self.occupants[resident] = Occupant(resident, f"{owner}/{resident}", "moderator")
        stays = {"persistentroom": "1"} if resident else {}
        self.options = configuration.NEW | stays

    @property
    def everybody(self) -> list[Occupant]:
        """All occupants."""
        return list(self.occupants.values())

    @property
    def is_over(self) -> bool:
        """Whether the room is empty and not persistent."""
        return not self.occupants and not self.options["persistentroom"]

    def find(self, jid: str) -> Occupant | None:
        """Return the occupant with the full JID; None if there is none."""
        return next((who for who in self.everybody if who.jid == jid), None)

    def put_out(self, occupant: Occupant, *codes: str) -> Deliveries:
        """Remove an occupant, for the reason that `codes` give (section 16.6.2)."""
        return self._set_role(occupant, "none", _status(*codes))

    def receive(
        self, stanza: Element, nick: str, now: datetime, *, is_taken: bool = False
    ) -> Deliveries:
        """Handle a stanza to the room, or to `nick` in it, and return the stanzas to send.

        With `is_taken` the nickname counts as taken.
        """
        try:
            if stanza.tag == names.PRESENCE:
                return self._presence(stanza, nick, now, is_taken)
            is_message = stanza.tag == names.MESSAGE
            return self._message(stanza, nick, now) if is_message else self._iq(stanza, nick)
        except RefusedError as refusal:
            return error(stanza, str(refusal))

    def _presence(self, stanza: Element, nick: str, now: datetime, is_taken: bool) -> Deliveries:
        """Let the sender enter, change nickname or presence, or leave.

        Sections 7.2, 7.6, 7.7 and 7.14.
        """
        jid, request = stanza.get("from", ""), stanza.find(names.JOIN)
        content = _content(stanza)
        present, created = self.find(jid), not self._affiliations
        if stanza.get("type") is not None:
            return self._remove(replace(present, role="none", presence=content)) if present else []
        refuse(jid_malformed=not nick.strip() or len(nick) > PART_LIMIT)
        role = present.role if present else self._admit(jid, request)
        keeps = present is not None and present.nick == nick
        refuse(conflict=not keeps and (is_taken or nick in self.occupants))
        sent = []
        if present and not keeps:
            sent = self._remove(replace(present, presence=""), _status("303"), nick=nick)
        others = [other for other in self.everybody if other != present]
        newcomer = self.occupants[nick] = Occupant(nick, jid, role, content)
        if created:
            self._affiliations[newcomer.account] = "owner"
        if request is None:
            return sent + self._show(newcomer, [*others, newcomer])
        codes = ([] if present else ["100"]) + (["201"] if created else [])
        for other in others:
            sent += self._show(other, [newcomer])
        sent += self._show(newcomer, others) + self._show(newcomer, [newcomer], _status(*codes))
        for message in (*self._history_for(request, now), self._subject):
            sent += _addressed(message, [newcomer])
        return sent

    def _admit(self, jid: str, request: Element | None) -> str:
        """Return the role of a client that may enter (sections 7.2.5 to 7.2.8)."""
        password = "" if request is None else request.findtext(f"{{{names.MUC}}}password", "")
        role = self._default_role(jid)
        refuse(
            item_not_found=request is None,
            registration_required=role == "none" and self.options["membersonly"],
            forbidden=role == "none",
            not_authorized=self.options["roomsecret"] not in ("", password),
        )
        return role

    def _message(self, stanza: Element, nick: str, now: datetime) -> Deliveries:
        """Pass on a message to all occupants or to one (sections 7.4, 7.5 and 8.1)."""
        speaker, listener = self.find(stanza.get("from", "")), self.occupants.get(nick)
        body, subject = stanza.findtext(names.BODY), stanza.find(names.SUBJECT)
        kind, sets_subject = stanza.get("type", "normal"), subject is not None and not body
        if speaker is None:
            raise RefusedError("not-acceptable")
        may_set = speaker.role == "moderator" or self.options["changesubject"]
        silent = speaker.role == "visitor" or (sets_subject and not may_set)
        refuse(
            item_not_found=nick and listener is None,
            bad_request=(kind == "groupchat") == bool(nick),
            forbidden=silent and not nick,
        )
        said = self._head(speaker.nick, kind, stanza.get("id")), _content(stanza)
        said[0]["xml:lang"] = stanza.get(names.LANGUAGE, "")
        answer = self._head(self._resident, kind), tag("body", f"You said: {escaped(body or '')}")
        if listener is not None and nick == self._resident:
            return [] if kind == "error" else _addressed(answer, [speaker])
        if listener is not None:
            return _addressed((said[0], said[1] + tag("x", xmlns=names.MUC_USER)), [listener])
        stamp, sent = now.isoformat(timespec="milliseconds").replace("+00:00", "Z"), []
        for head, content in [said, answer] if body and self._resident else [said]:
            id_ = tag("stanza-id", xmlns=names.STANZA_ID, id=secrets.token_hex(8), by=self.jid)
            delay = tag("delay", xmlns=names.DELAY, from_=self.jid, stamp=stamp)
            if body:
                self._history.append((now, (head, content + id_ + delay)))
            elif sets_subject:
                self._subject = head, content + id_ + delay
            sent += _addressed((head, content + id_), self.everybody)
        return sent

    def _iq(self, stanza: Element, nick: str) -> Deliveries:
        """Answer a query to the room, or pass one on to an occupant (section 17.4)."""
        asking, asked = self.find(stanza.get("from", "")), self.occupants.get(nick)
        kind = stanza.get("type", "")
        refuse(not_acceptable=nick and not asking, item_not_found=nick and not asked)
        if asking and asked:
            of_itself = asked == asking and stanza.find(names.PINGED) is not None  # XEP-0410
            if of_itself or nick == self._resident:
                return disco(stanza, "client bot", ())
            head = self._head(asking.nick, kind, stanza.get("id"))
            return [(asked.jid, tag("iq", _content(stanza), to=asked.jid, **head))]
        item = stanza.find(f"{{{names.MUC_ADMIN}}}query/{{{names.MUC_ADMIN}}}item")
        owner = stanza.find(f"{{{names.MUC_OWNER}}}query")
        if item is not None and kind in ("get", "set"):
            return self._list(stanza, item) if kind == "get" else self._moderate(stanza, item)
        if owner is not None and kind in ("get", "set"):
            return self._configure(stanza, owner)
        features = (*FEATURES, *configuration.features(self.options))
        form = configuration.information_form(self.options, len(self.occupants))
        name = self.options["roomname"]
        return disco(stanza, "conference text", features, name=name, form=form)

    def _list(self, stanza: Element, item: Element) -> Deliveries:
        """Answer who has an affiliation or a role (sections 8.5, 9.5 and 9.8)."""
        affiliation, role = item.get("affiliation", ""), item.get("role", "")
        mine, asking = self._affiliation(stanza.get("from", "")), self.find(stanza.get("from", ""))
        moderates = asking is not None and asking.role == "moderator"
        decides = mine in ADMINS and RANKS.get(affiliation, 0) <= RANKS[mine]
        refuse(
            bad_request=affiliation not in AFFILIATIONS and role not in ROLES,
            forbidden=not (decides if affiliation else moderates),
        )
        jids = [jid for jid, held in self._affiliations.items() if held == affiliation]
        why = self._reasons
        items = [tag("item", why.get(jid, ""), affiliation=affiliation, jid=jid) for jid in jids]
        items += [self._item(who, nick=who.nick) for who in self.everybody if who.role == role]
        return reply(stanza, "result", tag("query", "".join(items), xmlns=names.MUC_ADMIN))

    def _moderate(self, stanza: Element, item: Element) -> Deliveries:
        """Change an affiliation or a role (sections 8, 9 and 10)."""
        affiliation, role, nick = (item.get(key, "") for key in ("affiliation", "role", "nick"))
        actor, target = stanza.get("from", ""), self.occupants.get(nick)
        jid = item.get("jid", "").lower() or (target.account if target else "")
        acting = self.find(actor)
        why = (tag("actor", nick=acting.nick) if acting else "") + _reason(item, names.MUC_ADMIN)
        if affiliation and jid and not role:
            sent = self._change_affiliation(actor, jid, affiliation, why)
            self._reasons[jid] = _reason(item, names.MUC_ADMIN) or self._reasons.get(jid, "")
            if affiliation == "none":
                del self._reasons[jid]
        elif role and nick and not affiliation:
            sent = self._change_role(actor, target, role, why)
        else:
            raise RefusedError("bad-request")
        return sent + reply(stanza, "result")

    def _change_role(self, actor: str, target: Occupant | None, role: str, why: str) -> Deliveries:
        """Change a role if the actor may (sections 8.2 to 8.4, 9.6 and 9.7)."""
        if target is None:
            raise RefusedError("item-not-found")
        acting, mine = self.find(actor), self._affiliation(actor)
        moderates = acting is not None and acting.role == "moderator"
        outranked = RANKS[mine] < RANKS[self._affiliation(target.jid)]
        needs_admin = "moderator" in (target.role, role)
        refuse(
            not_acceptable=role not in ROLES,
            not_allowed=not moderates or outranked or (needs_admin and mine not in ADMINS),
        )
        return self._set_role(target, role, _status("307"), why)

    def _change_affiliation(self, actor: str, jid: str, new: str, why: str) -> Deliveries:
        """Change an affiliation if the actor may, and the roles that go with it.

        Sections 9.1 to 9.4, 10.3 to 10.8.
        """
        mine, old = self._affiliation(actor), self._affiliation(jid)
        owners = [account for account, held in self._affiliations.items() if held == "owner"]
        among_admins = mine == "owner" or (mine == "admin" and not {new, old} & set(ADMINS))
        refuse(
            jid_malformed="/" in jid or len(jid) > 2 * PART_LIMIT,
            not_acceptable=new not in AFFILIATIONS,
            not_allowed=not among_admins,
            conflict=owners == [jid] and new != "owner",
        )
        self._affiliations = {**self._affiliations, jid: new}
        if new == "none":
            del self._affiliations[jid]
        role, code = self._default_role(jid), "301" if new == "outcast" else "321"
        sent = []
        for who in [who for who in self.everybody if who.account == jid]:
            keeps = RANKS[new] >= RANKS[old] and RANKS[who.role] >= RANKS[role]
            sent += self._set_role(who, who.role if keeps else role, _status(code), why)
        item = tag("item", affiliation=new, jid=jid) + (_status(code) if role == "none" else "")
        absent = tag("x", item, xmlns=names.MUC_USER)
        return sent or _addressed(({"from_": self.jid}, absent), self.everybody)

    def _set_role(self, occupant: Occupant, role: str, code: str, why: str = "") -> Deliveries:
        """Change an occupant's role; the role `none` removes them, with the status `code`."""
        changed = replace(occupant, role=role)
        if role == "none":
            return self._remove(replace(changed, presence=""), code, why)
        self.occupants[occupant.nick] = changed
        return self._show(changed, self.everybody, why=why)

    def _configure(self, stanza: Element, query: Element) -> Deliveries:
        """Give out the configuration, change it, or destroy the room (sections 10.2 and 10.9)."""
        refuse(forbidden=self._affiliation(stanza.get("from", "")) != "owner")
        if stanza.get("type") == "get":
            empty = configuration.configuration_form(self.options)
            return reply(stanza, "result", tag("query", empty, xmlns=names.MUC_OWNER))
        destroy = query.find(f"{{{names.MUC_OWNER}}}destroy")
        form = query.find(f"{{{names.DATA_FORMS}}}x")
        if destroy is not None:
            gone = [replace(who, role="none", presence="") for who in self.everybody]
            self.occupants, self.options = {}, configuration.NEW
            end = tag("destroy", _reason(destroy, names.MUC_OWNER), jid=destroy.get("jid"))
            sent = [delivery for former in gone for delivery in self._show(former, [former], end)]
            return sent + reply(stanza, "result")
        if form is None:
            raise RefusedError("bad-request")
        before, self.options = self.options, configuration.configured(self.options, form)
        sent = []
        for occupant in self.everybody:
            if self._default_role(occupant.jid) == "none":
                sent += self.put_out(occupant, "322")
        sent += reply(stanza, "result")
        if self.options != before:
            notice = self._head("", "groupchat"), tag("x", _status("104"), xmlns=names.MUC_USER)
            sent += _addressed(notice, self.everybody)
        return sent

    def _affiliation(self, jid: str) -> str:
        return self._affiliations.get(names.bare(jid), "none")

    def _default_role(self, jid: str) -> str:
        """Return the role of an account that enters (sections 5.1.2 and 10.1)."""
        guest = "visitor" if self.options["moderatedroom"] else "participant"
        guest = "none" if self.options["membersonly"] else guest
        roles = {"outcast": "none", "none": guest, "member": "participant"}
        return roles.get(self._affiliation(jid), "moderator") if self._affiliations else "moderator"

    def _remove(self, gone: Occupant, end: str = "", why: str = "", nick: str = "") -> Deliveries:
        everybody = self.everybody
        del self.occupants[gone.nick]
        return self._show(gone, everybody, end, why, nick)

    def _show(
        self, who: Occupant, to: Iterable[Occupant], end: str = "", why: str = "", nick: str = ""
    ) -> Deliveries:
        """Return an occupant's presence, or absence, for each of `to` (section 7.2.2).

        The occupant's own copy has the code 110. `why` is the content of the item, `nick` is the
        new nickname that the item names, and `end` comes after the item.
        """
        head = {"from_": f"{self.jid}/{who.nick}"}
        if who.nick not in self.occupants:
            head["type"] = "unavailable"
        sent = []
        for other in to:
            own = _status("110") if other.jid == who.jid else ""
            extension = tag("x", self._item(who, why, nick) + end + own, xmlns=names.MUC_USER)
            xml = tag("presence", who.presence + extension, to=other.jid, **head)
            sent.append((other.jid, xml))
        return sent

    def _item(self, who: Occupant, why: str = "", nick: str = "") -> str:
        affiliation = self._affiliation(who.jid)
        return tag("item", why, affiliation=affiliation, role=who.role, jid=who.jid, nick=nick)

    def _history_for(self, request: Element, now: datetime) -> Iterable[Message]:
        """Return as much of the history as was asked for (section 7.2.14)."""
        asked = request.find(f"{{{names.MUC}}}history")
        bounds = {} if asked is None else asked.attrib
        numbers = {key: int(it) for key, it in bounds.items() if re.fullmatch(r"\d{1,9}", it)}
        most = dict.fromkeys(("seconds", "maxstanzas", "maxchars"), 10**9) | numbers
        since = now - timedelta(seconds=most["seconds"])
        with suppress(KeyError, ValueError, TypeError):
            since = max(since, datetime.fromisoformat(bounds["since"]))
        recent = (message for said, message in self._history if said >= since)
        recalled = deque(recent, maxlen=most["maxstanzas"])
        while sum(len(content) for _, content in recalled) > most["maxchars"]:
            recalled.popleft()
        return recalled

    def _head(self, nick: str, kind: str, id_: str | None = None) -> dict[str, str]:
        from_ = f"{self.jid}/{nick}" if nick else self.jid
        return {"from_": from_, "type": kind, "id": id_ or secrets.token_hex(8)}


def _reason(element: Element, namespace: str) -> str:
    given = element.findtext(f"{{{namespace}}}reason")
    return tag("reason", escaped(given)) if given else ""


def _status(*codes: str) -> str:
    return "".join(tag("status", code=code) for code in codes)


def _addressed(message: Message, audience: Iterable[Occupant]) -> Deliveries:
    head, content = message
    return [(to.jid, tag("message", content, to=to.jid, **head)) for to in audience]


def _content(stanza: Element) -> str:
    content = "".join(written(child, names.CLIENT) for child in stanza if child.tag not in RESERVED)
    refuse(policy_violation=len(content) > CONTENT_LIMIT)
    return content
