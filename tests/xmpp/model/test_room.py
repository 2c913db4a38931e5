from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from bridge.store.clock import Instant
from bridge.xmpp.model import room
from bridge.xmpp.model.events import (
    UNKNOWN,
    Connected,
    ConnectionChanged,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    Phase,
    Source,
    SubjectChanged,
    Tls,
)
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import Departure, LastError, LastIncoming, Room, RoomStatus

ROOM = "room@muc.example"
FAULT = Fault("connection-reset", "It was cut.", "Wait.")
TLS = Tls("TLSv1.3", "TLS_AES_256_GCM_SHA384", verified=True)


class Story:
    def __init__(self, phase: Phase = Phase.RESOLVING) -> None:
        self.room = Room(nickname="Me", service="xmpp://h:1", phase=phase, since=0)
        self._seconds = count(1)

    def tell(self, *events: Event, earlier: bool = False) -> RoomStatus:
        for event in events:
            second = next(self._seconds)
            self.room.apply(Record(second, float(second), event, earlier=earlier))
        return self.room.status()


def _present(nickname: str = "A", **more: object) -> OccupantJoined:
    event = OccupantJoined(f"{ROOM}/{nickname}", nickname, "participant", "none")
    return replace(event, **more)  # type: ignore[arg-type]


ME = _present("Me", self_=True)
ENTERING, JOINED = ConnectionChanged(Phase.JOINING), ConnectionChanged(Phase.JOINED)
LOST = ConnectionChanged(Phase.WAITING, FAULT)


def _left(nickname: str, *, own: bool = False) -> OccupantLeft:
    return OccupantLeft(f"{ROOM}/{nickname}", nickname, self_=own)


def _renamed(nickname: str, new: str, *, own: bool = False) -> NicknameChanged:
    return NicknameChanged(f"{ROOM}/{nickname}", nickname, new, self_=own)


def _said(
    body: str, nickname: str = "Wilma", *, source: Source = Source.LIVE, own: bool = False
) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body, source=source, own=own)


def _names(status: RoomStatus) -> list[str]:
    return [each.nickname for each in status.occupants]


def test_a_join_is_connected_and_a_loss_is_not_and_its_error_outlives_the_next_join() -> None:
    story = Story()
    assert story.tell(JOINED).connected
    lost = story.tell(replace(LOST, attempt=1, next_attempt_in_ms=4_000))
    assert not lost.connected
    assert (lost.since, lost.attempt, lost.next_attempt_at) == (2, 1, 6)
    assert (story.tell(LOST).since, story.room.status().last_error) == (2, LastError(FAULT, 3))
    joined = story.tell(JOINED)
    assert (joined.last_error, joined.next_attempt_at) == (LastError(FAULT, 3), None)


def test_occupants_come_and_go_in_order_and_a_change_of_nickname_is_one_throughout() -> None:
    story = Story(Phase.JOINED)
    assert _names(story.tell(_present("A"), _present("B"), ME)) == ["A", "B", "Me"]
    assert _names(story.tell(_left("B"), _left("nobody"), _renamed("nobody", "B"))) == ["A", "Me"]
    status = story.tell(_renamed("A", "a/b"), _renamed("Me", "I", own=True))
    assert [(each.jid, each.nickname, each.since) for each in status.occupants] == [
        (f"{ROOM}/a/b", "a/b", 1),
        (f"{ROOM}/I", "I", 3),
    ]
    assert status.nickname == "I"


def test_since_is_known_of_whom_we_saw_come_and_of_nobody_who_was_there_before_us() -> None:
    story = Story()
    story.tell(ENTERING, _present("before"), earlier=True)
    story.tell(ME)
    status = story.tell(_present("after"), replace(_present("before"), status="still here"))
    assert [(each.nickname, each.since) for each in status.occupants] == [
        ("before", None),
        ("Me", 3),
        ("after", 4),
    ]
    story.tell(ENTERING)
    story.tell(_present("after"), earlier=True)
    again = story.tell(ME)
    assert [each.since for each in again.occupants] == [None, 8]


def test_who_spoke_last_is_known_through_changes_of_presence_and_nickname() -> None:
    story = Story(Phase.JOINED)
    for name in ("Wilma", "Betty"):
        story.tell(_present(name))
    story.tell(_said("hello"), replace(_present("Wilma"), status="lunch"))
    (wilma, betty) = story.tell(_renamed("Wilma", "W")).occupants[::-1]
    assert (wilma.nickname, wilma.last_message_at, betty.last_message_at) == ("W", 3, None)
    assert story.room.classify(replace(_present("W"), status="lunch")) is None
    story.tell(_left("W"))
    assert story.tell(_present("W")).occupants[-1].last_message_at is None


def test_to_speak_is_to_say_something_live() -> None:
    for message, spoke in (
        (_said("hello"), True),
        (_said("psst")._replace(type="chat"), True),
        (_said("")._replace(encrypted="OMEMO"), True),
        (_said("mine", own=True), True),
        (_said("")._replace(payload=("composing (x)",)), False),
        (_said("old", source=Source.HISTORY), False),
        (_said("old", source=Source.ARCHIVE), False),
        (_said("hello", "Nobody"), False),
    ):
        (wilma,) = Story(Phase.JOINED).tell(_present("Wilma"), message).occupants
        assert (wilma.last_message_at == 2) is spoke


def test_nicknames_of_one_account_are_found_by_its_bare_jid() -> None:
    story = Story(Phase.JOINED)
    story.tell(_present("A", jid="bot@x/1"), _present("B", jid="w@x/1"), _present("hidden"))
    status = story.tell(_present("C", jid="bot@x/2"))
    assert status.accounts == {"bot@x": ["A", "C"], "w@x": ["B"]}


@pytest.mark.parametrize(
    ("left", "why", "by"),
    [
        ({}, "left", None),
        ({"status": "good\nbye"}, 'left: "good\\nbye"', None),
        ({"codes": {307}, "reason": "too loud", "actor": "Fred"}, 'kicked: "too loud"', "Fred"),
        ({"codes": {307}, "status": "lunch"}, "kicked", None),
        ({"codes": {301, 307}, "reason": "x\ny"}, 'banned: "x\\ny"', None),
        ({"codes": {321}}, "put out: the affiliation changed", None),
        ({"codes": {322}}, "put out: the room is for members only now", None),
        ({"codes": {332}}, "put out: the room service shuts down", None),
        ({"codes": {307, 333}}, "put out for a technical reason, often a lost connection", None),
        ({"codes": {999}}, "left", None),
    ],
)
def test_who_left_is_known_and_when_and_why(left: dict[str, Any], why: str, by: str | None) -> None:
    codes = frozenset(left.pop("codes", ()))
    event = replace(_left("Wilma"), codes=codes, **left)
    status = Story(Phase.JOINED).tell(_present("Wilma"), event)
    assert status.departures == (Departure("Wilma", 2, why, by),)


def test_the_newest_departures_are_kept_one_a_nickname(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_DEPARTURES", 2)
    story = Story(Phase.JOINED)
    for name in ("A", "B", "A"):
        status = story.tell(_present(name), _left(name))
    assert [(each.nickname, each.at) for each in status.departures] == [("B", 4), ("A", 6)]
    status = story.tell(_present("C"), _left("C"))
    assert [each.nickname for each in status.departures] == ["A", "C"]


def test_who_went_while_we_were_out_is_told_of_once_we_are_back() -> None:
    story = Story(Phase.JOINED)
    story.tell(_present("stays"), _present("goes"), ME)
    # Of a join that failed halfway nothing is known.
    story.tell(LOST, ENTERING, _present("stays"), ENTERING)
    assert story.tell(_present("stays")).departures == ()
    status = story.tell(_present("Me-2", self_=True))
    assert status.departures == (Departure("goes", 9, room.GONE_MEANWHILE),)
    assert story.tell(ENTERING, ME).departures[1:] == (Departure("stays", 11, room.GONE_MEANWHILE),)
    # Neither we nor strangers nor who changes the nickname have left.
    story.tell(_present("A"), _renamed("A", "B"))
    status = story.tell(_left("nobody"), _left("A"), _left("Me-2", own=True))
    assert len(status.departures) == 2


def test_the_last_incoming_message_is_the_newest_with_a_body_and_from_somebody_else() -> None:
    story = Story()
    status = story.tell(
        _said("first"),
        _said("second"),
        _said("from the archive", source=Source.ARCHIVE),
        _said("mine", "Me", own=True),
        _said(""),
    )
    assert status.last_incoming == LastIncoming(_said("second"), 2)


def _told(body: str, stamp: str | None, *, own: bool = False) -> MessageReceived:
    return _said(body, source=Source.HISTORY, own=own)._replace(delayed_from=stamp)


def test_of_live_messages_and_those_of_the_history_the_newest_is_the_last_incoming_one() -> None:
    story = Story()
    assert story.tell(_said("live")).last_incoming == LastIncoming(_said("live"), 1)
    older = _told("said before", "1970-01-01T00:00:00.500Z")
    assert story.tell(older).last_incoming == LastIncoming(_said("live"), 1)
    ahead = _told("while we were out", "2100-01-01T00:00:00.000Z")
    assert story.tell(ahead).last_incoming == LastIncoming(ahead, 3)
    ours = _told("ours", "2100-01-02T00:00:00.000Z")._replace(as_ours=True)
    assert story.tell(ours).last_incoming == LastIncoming(ahead, 3)
    undated = _told("undated", "yesterday")
    assert story.tell(undated).last_incoming == LastIncoming(undated, 5)
    assert story.tell(_said("now")).last_incoming == LastIncoming(_said("now"), 6)


@pytest.mark.parametrize("ahead", [0.0, 3_600.0, -3_600.0])
def test_the_history_is_compared_with_what_was_live_before_the_clock_was_set(ahead: float) -> None:
    state = Room(nickname="Me", service="", phase=Phase.JOINED, since=0)
    bodies = []
    for at, event in (
        (Instant.of(7_000.0 + ahead, 100.0), _said("live")),
        (Instant.of(7_020.0, 120.0), _told("said before", "1970-01-01T01:56:30.000Z")),
        (Instant.of(7_020.0, 120.0), _told("missed", "1970-01-01T01:56:50.000Z")),
    ):
        state.apply(Record(1, at, event))
        last = state.status().last_incoming
        bodies.append(last and last.message.body)
    assert bodies == ["live", "live", "missed"]


def test_a_stamp_of_the_future_hides_nothing_that_the_history_tells_later() -> None:
    story = Story()
    forged, later = _told("x", "9999-12-31T23:59:59.000Z"), _told("y", "1960-01-01T00:00:00.000Z")
    last = story.tell(_said("live"), forged, later).last_incoming
    assert last is not None
    assert last.message == later


def test_what_was_known_ends_with_the_connection_and_a_session_that_is_resumed_finds_it() -> None:
    story = Story()
    wire = Connected("me@example/r", "xmpp://h:2", TLS, "SCRAM-SHA-256")
    joined = story.tell(wire, ENTERING, _present("A"), SubjectChanged("tests"), JOINED)
    told = (joined.jid, joined.service, joined.tls, joined.sasl)
    assert told == (wire.jid, wire.service, TLS, wire.sasl)
    assert _names(joined) == ["A"]
    lost = story.tell(LOST)
    assert (lost.occupants, lost.subject) == ((), None)
    assert (lost.jid, lost.tls, lost.sasl) == (None, None, None)
    resumed = story.tell(ConnectionChanged(Phase.AUTHENTICATING), JOINED)
    assert (_names(resumed), resumed.subject) == (["A"], "tests")
    entering = story.tell(ENTERING)
    assert (entering.occupants, entering.subject) == ((), None)


def _meeting(*before: Event) -> Room:
    story = Story(Phase.JOINED)
    story.tell(*before)
    return story.room


def test_whoever_is_not_known_comes_in_and_presence_that_says_nothing_new_is_not_told() -> None:
    known = _present(show="away", status="out", jid="a@example/1")
    for before in ((), (_present("a"),), (known, _left("A"))):
        assert _meeting(*before).classify(known) == known
    assert _meeting(known).classify(known) is None
    # A room may repeat codes about itself with each presence.
    assert _meeting(known).classify(replace(known, codes=frozenset({100, 170}))) is None


def test_presence_of_somebody_known_is_a_change() -> None:
    for now in (
        *(_present(role="visitor"), _present(affiliation="member"), _present(show="dnd")),
        *(_present(status="out"), _present(jid="a@example/1"), _present(reason="welcome")),
        *(_present(actor="Owner"), _present(role="visitor", self_=True, codes=frozenset({110}))),
    ):
        assert _meeting(_present()).classify(now) == OccupantChanged(
            **vars(now),
            former_role="participant" if now.role != "participant" else None,
            former_affiliation="none" if now.affiliation != "none" else None,
        )


def test_of_somebody_whose_presence_cannot_be_read_the_account_alone_is_still_known() -> None:
    unread = _present(role=UNKNOWN, affiliation=UNKNOWN)
    there = _meeting(_present(role="moderator", affiliation="owner", jid="a@example/1"))
    event = there.classify(unread)
    assert event == OccupantChanged(
        **vars(replace(unread, jid="a@example/1")),
        former_role="moderator",
        former_affiliation="owner",
    )
    there.apply(Record(9, 9.0, event))
    assert there.classify(unread) is None
    assert _meeting().classify(unread) == unread


def test_a_live_message_has_the_real_jid_that_its_senders_presence_had() -> None:
    room = _meeting(_present("Wilma", jid="w@example/1"), _present("Betty"))
    for said in (_said("hello"), _said("hello")._replace(type="chat")):
        assert room.classify(said) == said._replace(jid="w@example/1")
    # An old message may be of somebody else who had the nickname.
    old = (_said("hello", source=source) for source in (Source.HISTORY, Source.ARCHIVE))
    for other in (_said("hello", "Betty"), _said("hello", "Nobody"), *old):
        assert room.classify(other) is other


def test_a_real_jid_is_forgotten_with_its_occupant_and_goes_with_a_nickname() -> None:
    wilma, said, later = _present("Wilma", jid="w@example/1"), _said("hello"), _said("hello", "W")
    assert _meeting(wilma, _left("Wilma")).classify(said) is said
    renamed = _meeting(wilma, _renamed("Wilma", "W"))
    assert renamed.classify(said) is said
    assert renamed.classify(later) == later._replace(jid="w@example/1")


def test_occupants_are_kept_up_to_a_number_and_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_OCCUPANTS", 2)
    story = Story(Phase.JOINING)
    full = story.tell(_present("Wilma"), _present("Fred"))
    assert (_names(full), full.warnings) == (["Wilma", "Fred"], [])
    status = story.tell(_present("Barney"), ME)
    assert _names(status) == ["Wilma", "Fred", "Me"]
    (warning,) = status.warnings
    assert "than the 2 that are kept" in warning
    # Whatever else claims to be ours is no exception.
    assert len(story.tell(_present("I", self_=True)).occupants) == 3
    # Those who are known go on being told of, and a new join begins anew.
    status = story.tell(replace(_present("Fred"), status="away"))
    assert [each.status for each in status.occupants] == [None, "away", None]
    changed = story.tell(ConnectionChanged(Phase.WAITING), ENTERING)
    assert changed.warnings == []


def test_our_messages_are_unheard_until_the_room_sends_them_back() -> None:
    story = Story(Phase.JOINED)
    sent = [MessageSent(f"{ROOM}/Me", "Me", "hello", id_) for id_ in "abc"]
    story.tell(*sent, _said("hello", "Me", own=True)._replace(id="b"), _said("hello", own=False))
    assert [*story.room.unheard] == ["a", "c"]
    story.tell(_said("hello", "Me")._replace(id="a"))  # anybody may say so
    story.tell(_said("hello", "Me", source=Source.ARCHIVE, own=True)._replace(id="c"))
    assert [*story.room.unheard] == ["a"]


def test_of_what_is_never_heard_the_newest_are_known() -> None:
    story = Story(Phase.JOINED)
    for number in range(room.MAX_UNHEARD + 1):
        assert len(story.room.unheard) == number
        story.tell(MessageSent(f"{ROOM}/Me", "Me", "hello", str(number)))
    assert len(story.room.unheard) == room.MAX_UNHEARD
    assert next(iter(story.room.unheard)) == "1"


@pytest.mark.parametrize(
    ("created", "nicknames", "warned"),
    [(True, ["Me"], True), (True, ["Me", "A"], False), (False, ["Me"], False)],
)
def test_a_room_we_made_is_a_warning(created: bool, nicknames: list[str], warned: bool) -> None:
    story = Story(Phase.JOINED)
    story.tell(*(_present(each, self_=each == "Me") for each in nicknames))
    status = story.tell(Joined(f"{ROOM}/Me-2", "Me-2", created=created))
    assert (status.nickname, status.room_created) == ("Me-2", created)
    assert ["MUC_ROOM" in each for each in status.warnings] == [True] * warned
    assert story.tell(LOST).warnings == []


@pytest.mark.parametrize("fault", [FAULT, FAULT._replace(condition="gone")])
def test_of_a_room_that_we_made_anew_the_spelling_is_not_blamed(fault: Fault) -> None:
    story = Story(Phase.JOINED)
    story.tell(Joined(f"{ROOM}/Me", "Me", created=False))
    story.tell(ConnectionChanged(Phase.FAILED, fault), ConnectionChanged(Phase.JOINED))
    (warning,) = story.tell(
        _present("Me", self_=True), Joined(f"{ROOM}/Me", "Me", created=True)
    ).warnings
    assert "the former room, in which the bridge was, is gone" in warning


@pytest.mark.parametrize(
    ("phase", "next_attempt_in_ms", "told"),
    [
        (Phase.WAITING, 4_000, "Tried again at 1970-01-01T00:00:06.000Z by itself"),
        (Phase.FAILED, 900_000, "Tried again at 1970-01-01T00:15:02.000Z by itself"),
        (Phase.FAILED, None, "call xmppCheck, which tries at once."),
        (Phase.CONNECTING, None, "Being tried again now."),
        (Phase.JOINING, None, "Being tried again now."),
        (Phase.JOINED, None, "Nothing is left to do: the bridge is in the room."),
        (Phase.CLOSED, None, "Not tried again: the bridge is ending."),
    ],
)
def test_what_comes_next_is_told(phase: Phase, next_attempt_in_ms: int | None, told: str) -> None:
    event = replace(LOST, phase=phase, next_attempt_in_ms=next_attempt_in_ms)
    assert told in Story().tell(LOST, event).outlook
