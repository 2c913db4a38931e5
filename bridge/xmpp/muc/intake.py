"""Makes events of what a room sends: drops forgeries and duplicates, and marks our own messages."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from xml.etree.ElementTree import Element

from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.events import Event, MessageReceived, OccupantJoined, Source, SubjectChanged
from bridge.xmpp.muc import reading
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.disco import Description

REMEMBERED = 5_000
"""Most messages that are remembered: more than a room sends in the overlap of two stays."""

GIVES_IDS = frozenset({stanzas.STANZA_ID, stanzas.MAM})
"""The features of a room that gives its messages stanza ids. With either feature, the room has to
remove ids that others gave in its name (XEP-0359, XEP-0313)."""


class Intake:
    """Reads what one room sends.

    It remembers the last `capacity` messages that came, and as many that we sent. `on_description`
    gets what the room says of itself.
    """

    def __init__(
        self,
        room: str,
        capacity: int = REMEMBERED,
        on_description: Callable[[Description], None] = lambda description: None,
    ) -> None:
        self._room = room
        self._seen = _RecentlyAdded(capacity)
        self._sent = _RecentlyAdded(capacity)
        self._gives_ids = False
        self.ours = frozenset[str | None]()
        """Our account and configured occupant JID, under which a former run of the bridge may have
        sent messages."""
        self._occupant_id: str | None = None
        """The occupant id that the room gives our account (XEP-0421); None until it does."""
        self.description = Description()
        """What the room has said of itself last."""
        self._on_description = on_description
        self.may_send_history = False
        """Whether the room may be sending its history: from our own presence to the subject."""

    def sent(self, id_: str, body: str) -> None:
        """Remember a message that we send."""
        self._sent.add(id_, hash(body))

    def read(self, stanza: Element, *, own: str) -> list[Event]:
        """Return the events in `stanza` from the room, in which we are the occupant `own`.

        An answer to disco#info has no events: it describes the room. It also says whether the
        stanza ids in the room's messages can be trusted.
        """
        if stanza.tag != stanzas.IQ or isinstance(stanza, DamagedElement):
            read = reading.read(stanza, room=self._room, own=own, gives_ids=self._gives_ids)
            return [self._believed(stanza, event) for event in read]
        if (
            stanza.get("type") == "result"
            # An occupant may send an answer too, though only the room was asked.
            and prepared(stanza.get("from", "")) == self._room
            and (description := disco.description_in(stanza)).features
        ):
            self._gives_ids = not GIVES_IDS.isdisjoint(description.features)
            self.description = description
            self._on_description(description)
        return []

    def deduplicate(self, message: MessageReceived) -> MessageReceived | None:
        """Return `message`; None if it has come before.

        Several sessions may share one nickname (XEP-0045, section 7.2.9 leaves it to the room), and
        somebody else may have had ours before. A message under our nickname is our own only if we
        sent it. While we are away, others can take our nickname and repeat an id of ours, so a copy
        that is not live must have our text too. A live message may have another text: nobody else
        has our nickname then, and the room may change texts.
        """
        sent = self._sent.get(message.id)
        live = message.source is Source.LIVE
        if message.own and (sent is None or not (live or sent == hash(message.body))):
            message = replace(message, own=False)
        key = _key(message)
        if key in self._seen:
            # Live messages are never dropped: two different ones may be alike.
            return message if live else None
        self._seen.add(key, message.sender)
        if message.retracts and not message.sender:
            author = self._seen.get(hash(message.retracts))
            message = replace(message, author=author if isinstance(author, str) else None)
        return message

    def _believed(self, stanza: Element, event: Event) -> Event:
        """Return `event` without claims that an occupant may have made in the room's name.

        The room puts delay stamps on its history, which it sends between our own presence and the
        subject (XEP-0045, section 7.1). Messages that come later are live.
        """
        match event:
            case SubjectChanged() | MessageReceived(type="groupchat", delayed_from=None):
                self.may_send_history = False
            case MessageReceived(type=type_) if type_ != "groupchat" or not self.may_send_history:
                event = replace(event, source=Source.LIVE, delayed_from=None)
            case MessageReceived(from_=sender, own=own):
                id_ = reading.occupant_id(stanza)
                known = id_ is not None and id_ == self._occupant_id
                senders = {sender, *reading.original_senders(stanza)}
                if own or known or not senders.isdisjoint(self.ours):
                    event = replace(event, as_ours=True)
            case OccupantJoined(self_=True):
                self._occupant_id = reading.occupant_id(stanza)
        return event


class _RecentlyAdded(OrderedDict[Hashable, object]):
    """The last `capacity` keys that were added, each with a value."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def add(self, key: Hashable, value: object) -> None:
        self[key] = value
        if len(self) > self._capacity:
            self.popitem(last=False)


def _key(message: MessageReceived) -> int:
    """Return a hash of the message: it is small, however long the message is.

    Python seeds its hashes anew in each process, so nobody can write two messages with the same
    hash.
    """
    if message.stanza_id is not None:
        return hash(message.stanza_id)
    concerns = (message.reacts_to, message.reactions, message.retracts)
    silent = (message.encrypted, message.payload)
    return hash((message.from_, message.id, message.body, concerns, silent))
