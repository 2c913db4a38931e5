"""One chat room (XEP-0045), perhaps with a resident that answers: stanzas in, stanzas out.

Everybody in it sees everybody's real JID; its owner is its moderator, all others are participants.
"""

import secrets
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from xml.etree.ElementTree import Element

from bridge.sandbox.stanza import CLIENT, MUC, Delivery, disco, error, escape, render, reply

HISTORY_LIMIT = 100
"""Messages that a room remembers for those who come later."""

FEATURES = (MUC, "urn:xmpp:ping", "urn:xmpp:sid:0", "muc_nonanonymous", "muc_open", "muc_public")
RESERVED = (f"{{{MUC}}}x", f"{{{MUC}#user}}x", "{urn:xmpp:delay}delay", "{urn:xmpp:sid:0}stanza-id")
"""Elements that receivers believe only if the room wrote them; they are removed from stanzas."""


@dataclass(frozen=True)
class Occupant:
    """Somebody in the room; `shown` is the content of their presence, as XML."""

    nick: str
    jid: str
    shown: str = ""


class Room:
    """The room `jid`; its owner is `owner`, or else whoever enters first."""

    def __init__(self, jid: str, owner: str = "", resident: str = "", subject: str = "") -> None:
        self._jid = jid
        self._owner = owner
        self._resident = resident
        self._subject = (
            f"from='{escape(jid)}' type='groupchat'",
            f"<subject>{escape(subject)}</subject>",
        )
        self._history: deque[tuple[datetime, str, str]] = deque(maxlen=HISTORY_LIMIT)
        self.occupants = {resident: Occupant(resident, f"{owner}/{resident}")} if resident else {}

    def find(self, jid: str) -> Occupant | None:
        """Return who is here with the full JID."""
        return next((one for one in self.occupants.values() if one.jid == jid), None)

    def kick(self, nick: str) -> list[Delivery]:
        """Put an occupant out in the room's own name (section 8.2)."""
        return self._remove(replace(self.occupants[nick], shown=""), "307")

    def presence(self, stanza: Element, nick: str) -> list[Delivery]:
        """Take in a presence: its sender enters, stays or leaves (sections 7.2, 7.7 and 7.14)."""
        newcomer = Occupant(nick, stanza.get("from", ""), _content(stanza))
        present, request = self.find(newcomer.jid), stanza.find(f"{{{MUC}}}x")
        if stanza.get("type") is not None:
            return self._remove(replace(present, shown=newcomer.shown)) if present else []
        if not nick.strip():
            return error(stanza, "jid-malformed")
        if self.occupants.get(nick, present) != present:
            return error(stanza, "conflict")
        # A change of nickname is not supported.
        if present.nick != nick if present else request is None:
            return error(stanza, "not-acceptable")
        others = [one for one in self.occupants.values() if one != present]
        self.occupants[nick] = newcomer
        if request is None:
            return self._show(newcomer, [*others, newcomer])
        codes = ("100",) if self._owner else ("100", "201")
        self._owner = self._owner or newcomer.jid.partition("/")[0]
        sent = [seen for other in others for seen in self._show(other, [newcomer])]
        sent += self._show(newcomer, others) + self._show(newcomer, [newcomer], *codes)
        for head, content in (*self._history_for(request), self._subject):
            sent += _addressed(head, content, [newcomer])
        return sent

    def message(self, stanza: Element, nick: str, now: datetime) -> list[Delivery]:
        """Pass on a message to everybody or to one occupant (sections 7.4, 7.5 and 8.1)."""
        speaker, listener = self.find(stanza.get("from", "")), self.occupants.get(nick)
        body, subject = stanza.findtext(f"{CLIENT}body"), stanza.find(f"{CLIENT}subject")
        if speaker is None:
            return error(stanza, "not-acceptable")
        if nick and listener is None:
            return error(stanza, "item-not-found")
        if (stanza.get("type") == "groupchat") == bool(nick):
            return error(stanza, "bad-request")
        kind = "chat" if nick else "groupchat"
        said = self._head(speaker.nick, kind, stanza.get("id")), _content(stanza)
        answer = self._head(self._resident, kind), f"<body>You said: {escape(body)}</body>"
        if listener is not None:
            is_resident = nick == self._resident
            return _addressed(*answer, [speaker]) if is_resident else _addressed(*said, [listener])
        if subject is not None and not body:
            if not self._owns(speaker):
                return error(stanza, "forbidden")
            self._subject = said
        sent = self._reflect(*said, now if body else None)
        return sent + (self._reflect(*answer, now) if body and self._resident else [])

    def iq(self, stanza: Element, nick: str) -> list[Delivery]:
        """Answer a query to the room or an occupant (XEP-0410); the owner accepts it and kicks."""
        asking = self.find(stanza.get("from", ""))
        item = stanza.find(f"{{{MUC}#admin}}query/{{{MUC}#admin}}item")
        form = stanza.find(f"{{{MUC}#owner}}query/{{jabber:x:data}}x")
        if nick and (asking is None or nick not in self.occupants):
            return error(stanza, "item-not-found" if asking else "not-acceptable")
        if nick or stanza.get("type") != "set" or (item is None and form is None):
            return disco(stanza, "category='conference' type='text'", FEATURES)
        if asking is None or not self._owns(asking):
            return error(stanza, "forbidden")
        if item is None:  # section 10.1.2
            return reply(stanza, "result")
        target = self.occupants.get(item.get("nick", ""))
        if target is None or item.get("role") != "none":
            return error(stanza, "item-not-found" if target is None else "feature-not-implemented")
        reason = escape(item.findtext(f"{{{MUC}#admin}}reason"))
        why = f"<actor nick='{escape(asking.nick)}'/><reason>{reason}</reason>"
        kicked = self._remove(replace(target, shown=""), "307", why=why)  # section 8.2
        return kicked + reply(stanza, "result")

    def _owns(self, occupant: Occupant) -> bool:
        return occupant.jid.partition("/")[0] == self._owner

    def _remove(self, gone: Occupant, *codes: str, why: str = "") -> list[Delivery]:
        everybody = list(self.occupants.values())
        del self.occupants[gone.nick]
        return self._show(gone, everybody, *codes, why=why)

    def _show(
        self, one: Occupant, audience: Iterable[Occupant], *codes: str, why: str = ""
    ) -> list[Delivery]:
        """Send an occupant's presence, or absence, to the audience (section 7.2.2).

        To themselves it has the code 110.
        """
        owner, here = self._owns(one), one.nick in self.occupants
        role = "none" if not here else "moderator" if owner else "participant"
        standing = f"affiliation='{'owner' if owner else 'none'}' role='{role}'"
        item = f"<item {standing} jid='{escape(one.jid)}'>{why}</item>"
        head = f"from='{self._name(one.nick)}'" + ("" if here else " type='unavailable'")
        sent = []
        for other in audience:
            seen = (*codes, "110") if other.jid == one.jid else codes
            statuses = "".join(f"<status code='{code}'/>" for code in seen)
            shown = f"{one.shown}<x xmlns='{MUC}#user'>{item}{statuses}</x>"
            sent.append(
                (other.jid, f"<presence to='{escape(other.jid)}' {head}>{shown}</presence>")
            )
        return sent

    def _reflect(self, head: str, content: str, at: datetime | None) -> list[Delivery]:
        """Send a message to everybody; with a time, it goes into the history."""
        by = escape(self._jid)
        content += f"<stanza-id xmlns='urn:xmpp:sid:0' id='{secrets.token_hex(8)}' by='{by}'/>"
        if at is not None:
            stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            delay = f"<delay xmlns='urn:xmpp:delay' from='{by}' stamp='{stamp}'/>"
            self._history.append((at, head, content + delay))
        return _addressed(head, content, self.occupants.values())

    def _history_for(self, request: Element) -> list[tuple[str, str]]:
        """Return as much of the history as was asked for (section 7.2.13)."""
        asked = request.find(f"{{{MUC}}}history")
        bounds = {} if asked is None else asked.attrib
        recalled: Iterable[tuple[datetime, str, str]] = self._history
        with suppress(KeyError, ValueError, TypeError):
            since = datetime.fromisoformat(bounds["since"])
            recalled = [past for past in recalled if past[0] >= since]
        with suppress(KeyError, ValueError, OverflowError):
            recalled = deque(recalled, maxlen=int(bounds["maxstanzas"]))
        return [(head, content) for _, head, content in recalled]

    def _name(self, nick: str) -> str:
        return escape(f"{self._jid}/{nick}")

    def _head(self, nick: str, kind: str, id_: str | None = None) -> str:
        return f"from='{self._name(nick)}' type='{kind}' id='{escape(id_ or secrets.token_hex(8))}'"


def _addressed(head: str, content: str, audience: Iterable[Occupant]) -> list[Delivery]:
    to = [one.jid for one in audience]
    return [(jid, f"<message to='{escape(jid)}' {head}>{content}</message>") for jid in to]


def _content(stanza: Element) -> str:
    return "".join(render(child) for child in stanza if child.tag not in RESERVED)
