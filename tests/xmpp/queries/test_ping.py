"""Whose silence it is: the occupant's, the room's or our own connection's."""

import asyncio
from xml.etree.ElementTree import Element

import pytest

from bridge.wire.names import DISCO_INFO, StanzaError
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.queries.iq_errors import Target, TargetKind
from bridge.xmpp.queries.ping import ALONE_SECONDS, Comparison, Verdict, ping_compared
from tests.xmpp.elements import parsed
from tests.xmpp.place import PLACE
from tests.xmpp.played_connection import RESULT, Answer, PlayedConnection, refused

PING = "urn:xmpp:ping"
ROOM, SERVER, SERVICE = "lobby@conference.example", "b.example", "conference.example"
INFO = f"<iq type='result'><query xmlns='{DISCO_INFO}'>{{}}</query></iq>"
CONFERENCE = parsed(INFO.format("<identity category='conference' type='text'/>"))
SOMETHING_ELSE = parsed(INFO.format("<identity category='server' type='im'/>"))
OWN, WILMA = f"{ROOM}/McpDebug", f"{ROOM}/Wilma"
OCCUPANT = Target(TargetKind.OCCUPANT, WILMA, OWN)
OURSELVES = Target(TargetKind.SELF, WILMA, WILMA)
HASTY, PATIENCE = 0.2, 10

OUT, SERVICE_GONE, UNKNOWN = map(
    refused, ("not-acceptable", "remote-server-timeout", "service-unavailable")
)


def _played(answers: dict[str, Answer]) -> PlayedConnection:
    return PlayedConnection(answers, PLACE._replace(domain="B.example"))


async def _compared(played: PlayedConnection, target: Target, seconds: float = HASTY) -> Comparison:
    async with asyncio.timeout(seconds + PATIENCE):
        return await ping_compared(played.connection, target, seconds)


ALONE = "The occupant alone is silent: the room and our server answer."
OUTSIDE = "The room does not count us among its occupants, as the answer shows."
ROOM_SILENT = "The room, or the service it is on, is silent: our server answers."
OURS_SILENT = "Our own server is silent, or the connection to it is dead."


@pytest.mark.parametrize(
    ("target", "answers", "verdict"),
    [
        (OCCUPANT, {OWN: RESULT, SERVER: RESULT}, ALONE),
        (OCCUPANT, {OWN: UNKNOWN, SERVER: None}, ALONE),
        (OCCUPANT, {OWN: OUT, SERVER: RESULT}, OUTSIDE),
        (
            OCCUPANT,
            {OWN: SERVICE_GONE, SERVER: RESULT},
            "Our server answers, and cannot reach the room's server.",
        ),
        (OCCUPANT, {SERVER: UNKNOWN}, ROOM_SILENT),
        (OCCUPANT, {}, OURS_SILENT),
        (Target(TargetKind.SELF, OWN, OWN), {SERVER: RESULT}, ROOM_SILENT),
        (Target(TargetKind.ROOM, ROOM, OWN), {SERVER: RESULT}, ROOM_SILENT),
        (
            Target(TargetKind.DOMAIN, "other.example"),
            {SERVER: RESULT},
            "The address is silent, or its own server is: our server answers.",
        ),
        (Target(TargetKind.ACCOUNT, "w@other.example"), {}, OURS_SILENT),
        (Target(TargetKind.SERVER, SERVER), {}, OURS_SILENT),
    ],
)
async def test_the_nearest_silence_is_told(
    target: Target, answers: dict[str, Answer], verdict: str
) -> None:
    played = _played(answers | {SERVICE: CONFERENCE})
    comparison = await _compared(played, target)
    assert comparison.verdict == verdict
    assert (comparison.pong.seconds, comparison.pong.reachable) == (None, False)
    assert comparison.pong.error is not None
    assert comparison.pong.error.condition == "remote-server-timeout"
    assert comparison.pong.error.message == f'"{target.address}" did not answer within 0.2 s.'
    between = {TargetKind.OCCUPANT: [SERVER, OWN], TargetKind.SERVER: []}
    assert [address for address, asked in played.asked if asked == PING] == [
        target.address,
        *between.get(target.kind, [SERVER]),
    ]


@pytest.mark.parametrize(
    ("target", "answer", "verdict", "reachable"),
    [
        (OCCUPANT, RESULT, "It answers.", True),
        (OCCUPANT, UNKNOWN, "It is there: it answers with an error.", True),
        (OCCUPANT, OUT, "An error came back, which does not prove that it is there.", False),
        (OURSELVES, UNKNOWN, "The room counts us among its occupants.", True),
        (OURSELVES, OUT, OUTSIDE, False),
    ],
)
async def test_an_answer_is_one_ping_and_says_whether_somebody_is_there(
    target: Target, answer: Element | Exception, verdict: str, reachable: bool
) -> None:
    played = _played({WILMA: answer, SERVICE: CONFERENCE})
    comparison = await _compared(played, target, 5)
    assert (comparison.verdict, comparison.pong.reachable) == (verdict, reachable)
    assert comparison.pong.seconds is not None
    assert 0 < comparison.pong.seconds < ALONE_SECONDS
    doubted = [(SERVICE, DISCO_INFO)] if answer is UNKNOWN else []
    assert (comparison.server, comparison.own) == (None, None)
    assert played.asked == [(WILMA, PING), *doubted]
    expected = verdict.startswith("The room")
    assert (comparison.pong.in_room in {Verdict.IN, Verdict.OUT}) is expected


REFUSALS = [
    *("service-unavailable", "item-not-found", "recipient-unavailable"),
    *("remote-server-not-found", "remote-server-timeout"),
]


@pytest.mark.parametrize("service", [*map(refused, REFUSALS), SOMETHING_ELSE, RESULT])
@pytest.mark.parametrize("target", [OURSELVES, OCCUPANT, Target(TargetKind.ROOM, ROOM, OWN)])
async def test_who_seems_not_to_know_pings_is_gone_with_the_service_of_the_room(
    target: Target, service: Element | Exception
) -> None:
    comparison = await _compared(_played({target.address: UNKNOWN, SERVICE: service}), target, 5)
    assert not comparison.pong.reachable
    assert comparison.pong.error is not None
    assert "service of the room cannot be reached" in comparison.pong.error.message
    assert comparison.pong.in_room is (Verdict.GONE if target is OURSELVES else None)


@pytest.mark.parametrize("service", [None, refused("forbidden"), refused("resource-constraint")])
async def test_a_service_that_may_only_keep_to_itself_proves_nothing(service: Answer) -> None:
    comparison = await _compared(_played({WILMA: UNKNOWN, SERVICE: service}), OURSELVES, HASTY)
    assert comparison.pong.in_room is Verdict.IN


@pytest.mark.parametrize(
    ("by", "verdict", "asked"),
    [
        (SERVER, Verdict.GONE, False),
        (SERVICE, Verdict.IN, False),
        (ROOM, Verdict.IN, False),
        (OWN, Verdict.IN, False),
        ("me@b.example/phone", Verdict.GONE, True),
        ("not@a@jid", Verdict.GONE, True),
    ],
)
async def test_who_made_the_error_says_whether_the_service_is_there(
    by: str, verdict: Verdict, asked: bool
) -> None:
    error = IqError(StanzaError("service-unavailable", by=by))
    played = _played({WILMA: error, SERVICE: UNKNOWN})
    comparison = await _compared(played, OURSELVES, 5)
    assert comparison.pong.in_room is verdict
    assert ((SERVICE, DISCO_INFO) in played.asked) is asked


async def test_a_late_answer_is_one_though_others_were_asked_meanwhile() -> None:
    class Late(PlayedConnection):
        async def request(self, type_: str, to: str | None, payload: Element) -> Element:
            if to == OWN:
                self.came.set()
            if to == WILMA:
                await self.came.wait()
            return await super().request(type_, to, payload)

        came = asyncio.Event()

    comparison = await _compared(Late({WILMA: RESULT, OWN: RESULT, SERVER: RESULT}), OCCUPANT, 0.5)
    assert comparison.verdict == "It answers."
    assert comparison.pong.seconds is not None
    assert comparison.pong.seconds >= 0.25


@pytest.mark.parametrize("address", [WILMA, SERVER])
async def test_the_end_of_the_connection_is_no_answer(address: str) -> None:
    lost = ConnectionFailedError(Fault("connection-reset", "cut", "wait"))
    with pytest.raises(ConnectionFailedError):
        await _compared(_played({address: lost}), OCCUPANT)


async def test_a_call_that_is_given_up_leaves_no_ping_behind() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await ping_compared(_played({}).connection, OCCUPANT, 5)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
