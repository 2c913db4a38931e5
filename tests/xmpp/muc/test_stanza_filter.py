"""Which stanzas belong to an event, with events that a membership made of what came."""

from itertools import chain
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.link.trace import Direction, Trace
from bridge.xmpp.model.events import Event, MessageSent
from bridge.xmpp.model.faults import Place
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.muc.archive import read_result
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.publisher import Publisher
from bridge.xmpp.muc.stanza_filter import StanzaFilter, archived, keepalives, stanzas_of
from tests.xmpp.elements import append, parsed
from tests.xmpp.muc.entering import enter

ROOM = "lobby@conference.example"
OWN = f"{ROOM}/Me"
USER = "http://jabber.org/protocol/muc#user"


class Wire:
    def __init__(self) -> None:
        self.journal = Journal("epoch")
        self.trace = Trace(self.journal.numbering)
        place = Place("xmpp://example:5222", "example", "bot@example", ROOM, "Me")
        self._publisher = Publisher(self.journal, lambda: 0.0)
        self.membership = Membership(place, None, self._publisher)
        self._publisher.rooms[ROOM] = self.membership.room
        enter(self.membership)
        self.records: list[Record] = []
        self._publisher.listen(self.records.append)

    def traced(self, xml: str, direction: Direction = "in") -> tuple[Element, int]:
        element = parsed(xml)
        append(self.trace, direction, "1", element, 0.0)
        return element, self.journal.numbering.last

    def came(self, *xmls: str) -> list[int]:
        """Let stanzas come in one chunk, as a stream hands them over; return their numbers."""
        numbers = []
        for xml in xmls:
            element, number = self.traced(xml)
            self.receive(element)
            numbers.append(number)
        return numbers

    def receive(self, element: Element) -> None:
        """Read a stanza that was traced, as the participant has it read."""
        self._publisher.stanza = self.trace.number_of(element)
        self.membership.receive(element)
        self._publisher.stanza = 0

    def stanzas_of(self, record: Record) -> list[int]:
        return sorted(stanzas_of(record, [*self.trace]))

    def happen(self, event: Event) -> Record:
        return self._publisher.publish(event, ROOM)


def _said(body: str, nickname: str = "Wilma", more: str = "") -> str:
    return (
        f"<message from='{ROOM}/{nickname}' type='groupchat' {more}><body>{body}</body></message>"
    )


def _present(nickname: str = "Wilma", more: str = "", inner: str = "", type_: str = "") -> str:
    return (
        f"<presence from='{ROOM}/{nickname}' {type_}>{more}<x xmlns='{USER}'>{inner}"
        "<item affiliation='none' role='participant'/></x></presence>"
    )


GONE = "type='unavailable'"
SAID_ONCE = _said("again")
KINDS = {
    "a message": _said("hello", more="id='m1'"),
    "a private message": _said("psst").replace("groupchat", "chat"),
    "a presence": _present(more="<show>away</show>"),
    "a kick": _present(inner="<status code='307'/>", type_=GONE),
    "our own kick": _present("Me", inner="<status code='110'/><status code='307'/>", type_=GONE),
    "the end of the room": _present("Me", inner="<destroy/>", type_=GONE),
    "a refusal": f"<presence from='{ROOM}' type='error'><error type='cancel'>"
    "<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>",
    "a message of one's own from another client": _said("hello", "Me", "id='unknown'"),
}


@pytest.mark.parametrize("name", KINDS)
async def test_the_stanza_behind_an_event_is_found_among_others(name: str) -> None:
    wire = Wire()
    wire.came(_said("before"), _present("Fred"))
    known = [*wire.records]
    (number,) = wire.came(KINDS[name])
    wire.came(_said("after"))
    told = [each for each in wire.records if each not in known][:-1]
    assert told
    for record in told:
        assert wire.stanzas_of(record) == [number]


async def test_of_a_burst_in_one_chunk_each_entry_has_its_own_stanza() -> None:
    wire = Wire()
    known = _present().replace("role=", "jid='w@example/1' role=")
    burst = [
        (SAID_ONCE, _said(f"{number}"), known.replace("<x", f"<status>{number}</status><x"))
        for number in range(20)
    ]
    numbers = wire.came(known, *chain.from_iterable(burst))
    # The real JID that an event has need not stand in its stanza.
    assert getattr(wire.records[1].event, "jid", None) == "w@example/1"
    assert [wire.stanzas_of(each) for each in wire.records] == [[number] for number in numbers]


def _result(id_: str, inner: str, sender: str = ROOM) -> str:
    return (
        f"<message from='{sender}'><result xmlns='urn:xmpp:mam:2' queryid='q' id='{id_}'>"
        "<forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' "
        f"stamp='2026-01-01T00:00:00Z'/>{inner}</forwarded></result></message>"
    )


async def test_behind_a_message_from_the_archive_is_its_result() -> None:
    wire = Wire()
    forwarded = SAID_ONCE.replace("<message", "<message xmlns='jabber:client'")
    results = [wire.traced(_result(f"a{number}", forwarded)) for number in range(3)]
    wire.came(SAID_ONCE)
    wire.traced(_result("a1", forwarded, sender="other@conference.example"))
    for element, _ in results:
        read = read_result(element[0], room=ROOM, own=OWN)
        assert read is not None
        for event in read.events:
            wire.happen(event)
    live, *told = wire.records
    assert [wire.stanzas_of(each) for each in told] == [[number] for _, number in results]
    assert wire.stanzas_of(live) == [results[-1][1] + 1]
    assert archived(wire.trace, ROOM, "a1") == {results[1][1]}
    assert archived(wire.trace, ROOM, "a9") == set()


async def test_behind_what_we_said_is_what_went_out_and_what_came_back_or_the_refusal() -> None:
    for answer in (
        _said("hello", "Me", "id='m1'"),
        f"<message from='{ROOM}' type='error' id='m1'><error/></message>",
    ):
        wire = Wire()
        wire.membership._reflections.sent("m1", "hello")  # noqa: SLF001 - as `say` does
        _, sent = wire.traced(f"<message to='{ROOM}' type='groupchat' id='m1'/>", "out")
        first = wire.happen(MessageSent(OWN, "Me", "hello", "m1"))
        wire.traced("<message to='w@example' id='m1'/>", "out")
        (_, back) = wire.came(_said("meanwhile"), answer)
        second = wire.records[-1]
        wire.came(_said("hello", "Wilma", "id='m1'"))
        assert wire.stanzas_of(first) == wire.stanzas_of(second) == [sent, back]


async def test_a_stanza_that_was_evicted_is_behind_nothing_else() -> None:
    wire = Wire()
    wire.came(_said("hello"), _said("hello"))
    wire.trace.evict()
    assert [wire.stanzas_of(each) for each in wire.records] == [[], [3]]


PING = "<ping xmlns='urn:xmpp:ping'/>"


def test_pings_and_their_answers_and_acknowledgements_are_keepalives() -> None:
    trace = Trace(Journal("epoch").numbering)
    told: list[tuple[Direction, str, str, bool]] = [
        ("out", "1", f"<iq type='get' id='a'>{PING}</iq>", True),
        ("in", "2", "<iq type='result' id='a'/>", False),  # of another connection
        ("out", "1", "<iq type='result' id='a'/>", False),  # ours is no answer to ours
        ("in", "1", "<iq type='error' id='a'/>", True),
        ("in", "1", "<iq type='error' id='a'/>", False),  # answers nothing any more
        ("in", "1", f"<iq type='get' id='b' from='{ROOM}'>{PING}</iq>", True),
        ("out", "1", "<iq type='result' id='b'/>", True),
        ("out", "1", "<iq type='get' id='c'><query xmlns='x'/></iq>", False),
        ("in", "1", "<iq type='result' id='c'/>", False),
        ("in", "1", "<r xmlns='urn:xmpp:sm:3'/>", True),
        ("out", "1", "<a xmlns='urn:xmpp:sm:3' h='1'/>", True),
        ("out", "1", "<enable xmlns='urn:xmpp:sm:3'/>", False),
        ("in", "1", _said(PING), False),
    ]
    for direction, connection, xml, _ in told:
        append(trace, direction, connection, parsed(xml), 0.0)
    append(trace, "out", "1", "</stream:stream>", 0.0)
    expected = {number for number, (*_, hidden) in enumerate(told, 1) if hidden}
    assert keepalives(trace) == expected


@pytest.mark.parametrize(
    ("sender", "kept"),
    [
        ("Wilma", {1, 3}),
        (f"{ROOM.upper()}/Wilma", {1, 3}),
        (ROOM, {1, 2, 3, 6, 8}),
        ("w@example", {4}),
        ("w@example/phone", {4}),
        ("phone", set()),  # a resource is a nickname in a room only
        ("x\u1160y", {6}),
        ("x\\u{1160}y", {6}),
        ("Me", {5}),
        ("bot@example", {5}),
        ("", set()),
        ("\ud800@", set()),
        ("w@there", set()),  # a nickname; only its occupant JID is of whom has it
        (f"{ROOM}/w@there", {8}),
    ],
)
def test_a_sender_is_known_by_nickname_and_by_jid(sender: str, kept: set[int]) -> None:
    trace = Trace(Journal("epoch").numbering)
    forwarded = _said("old").replace("<message", "<message xmlns='jabber:client'")
    for xml in (
        _said("hello"),
        _said("hello", "Fred"),
        _result("a1", forwarded),
        "<message from='w@example/phone'/>",
    ):
        append(trace, "in", "1", parsed(xml), 0.0)
    append(trace, "out", "1", parsed(f"<message to='{ROOM}/Wilma'/>"), 0.0)
    append(trace, "in", "1", parsed(_said("hello", "x\u1160y")), 0.0)
    append(trace, "in", "1", "<stream:stream>", 0.0)
    append(trace, "in", "1", parsed(_said("hello", "w@there")), 0.0)
    wanted = StanzaFilter(sender=sender, rooms={ROOM}, own={"Me", OWN, "bot@example"})
    assert {each.number for each in trace if wanted.matches(each)} == kept
