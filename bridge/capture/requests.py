"""What a client asks, is asked and sends, and what comes of it. State and rules. Pure."""

from collections.abc import Iterator

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, key_of_finding
from bridge.capture.rooms import Rooms
from bridge.capture.stanza import MAX_TEXT, QUOTED, Stanza, outline
from bridge.capture.waiting import PATIENCE_STANZAS, AwaitedStanzas, Question
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire import names

MAX_MESSAGES = 64
"""We remember at most so many sent messages."""

ACKNOWLEDGEMENT: Question = "acknowledgement", "", ""


class Requests:
    """The requests of both sides that wait for an answer, and the messages that may come back."""

    def __init__(self) -> None:
        self.messages = Newest[str, Stanza](MAX_MESSAGES)
        """The newest messages that the client sent, by id, each as its `outline`."""
        self.waiting = AwaitedStanzas()
        self._early: tuple[Question, int] = ("", "", ""), 0
        """The latest answer without a waiting request, and how many stanzas had passed. Some
        libraries log an answer before its request, since they log a request only once it is
        written."""

    def take(self, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        match stanza.element.tag, stanza.sent:
            case "iq", _:
                yield from self._take_iq(client, stanza)
            case "message", True if stanza.element.get("type") != "error":
                self.remember(stanza)
            case "message", False:
                yield from refused(self, client, rooms, stanza)
            case names.ACK_REQUEST, True:
                self._wait(ACKNOWLEDGEMENT, client, stanza, "")
            case names.ACK, False:
                self.acknowledge()

    def late(self, stanza: Stanza, count: int) -> Iterator[Finding]:
        """Find the requests that were not answered in time, acknowledgements included."""
        for kind, awaited in self.waiting.expired(stanza, count):
            asked = awaited.stanza
            other = asked.element.get("to" if asked.sent else "from") or "its server"
            words = {"what": quoted(awaited.what, QUOTED), "other": quoted(other)}
            yield cause(kind, asked.place, awaited.what, **words)

    def is_asked(self, id_: str) -> bool:
        """Whether the client has to answer a request with this id."""
        return ("asks", id_[:MAX_TEXT]) in {key[:2] for key in self.waiting.open}

    def remember(self, stanza: Stanza) -> None:
        """Remember a message of the client: it may come back."""
        if id_ := stanza.element.get("id", ""):
            self.messages.add(id_[:MAX_TEXT], outline(stanza))

    def acknowledge(self) -> None:
        """Note that an acknowledgement has come. It has no id, and may come unasked."""
        self.waiting.overdue.pop(ACKNOWLEDGEMENT, None)
        self.waiting.open.pop(ACKNOWLEDGEMENT, None)

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide answers."""
        self.waiting.open.clear()

    def forget(self) -> None:
        """Forget everything, since no further stanza comes."""
        self.messages.clear()
        self.waiting.clear()

    def _take_iq(self, client: Entity, stanza: Stanza) -> Iterator[Disproof]:
        element, id_ = stanza.element, stanza.element.get("id", "")[:MAX_TEXT]
        other = client.other_side(element.get("to" if stanza.sent else "from"))[:MAX_TEXT]
        payloads = [child.tag for child in element]
        if element.get("type") in {"get", "set"}:
            if len(payloads) == 1 and "}" in payloads[0]:
                kind = "asked" if stanza.sent else "asks"
                self._wait((kind, id_, other), client, stanza, payloads[0])
            return
        key = "asks" if stanza.sent else "asked", id_, other
        if late := self.waiting.overdue.pop(key, None):
            if id_:
                yield Disproof(key_of_finding(key[0], late.what, ""))
        elif self.waiting.open.pop(key, None) is None and id_:
            self._early = key, client.count

    def _wait(self, key: Question, client: Entity, stanza: Stanza, what: str) -> None:
        """Expect an answer, unless the log has it just before the request."""
        answered, number = self._early
        if answered != key or client.count - number > PATIENCE_STANZAS:
            self.waiting.add(key, stanza, client.count, what)


def refused(requests: Requests, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Finding]:
    """Find the messages of the client that came back, and why."""
    element = stanza.element
    if element.get("type") != "error":
        return
    error = names.error_of(element)
    condition = error.condition
    original = requests.messages.get(element.get("id", "")[:MAX_TEXT])
    type_, to = "", element.get("from", "")
    if original:
        type_, to = original.element.get("type", "normal"), original.element.get("to", "")
    jid, _, nickname = to.partition("/")
    room = rooms.at(jid)
    is_private = room is not None and bool(nickname) and type_ != "groupchat"
    is_ruled_out = is_private and condition in {"forbidden", "policy-violation"}
    situation = "whispered" if is_ruled_out else "bounced"
    message, hint = meaning(situation, condition, client, error.text, room=to)
    name = "bounced"
    if type_ == "groupchat" and nickname:
        name = "bounced-groupchat"
    elif original and type_ != "groupchat" and room and not nickname:
        name = "bounced-chat"
    sent = f" The client sent it {original.place.words}." if original else ""
    words = {"message": message, "hint": hint, "sent": sent, "type": type_}
    yield cause(name, stanza.place, condition, about=jid, **words)
