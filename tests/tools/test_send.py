import asyncio
import dataclasses

import pytest

from bridge.mcp.schema import render
from bridge.mcp.toolset import ArgumentError, ToolError
from bridge.tools.entries import NOTICE
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.events import Phase
from bridge.xmpp.faults import BouncedError, Fault, NotReflectedError, NotSentError
from bridge.xmpp.membership import Reflection
from bridge.xmpp.room import LastError
from tests.tools.played import FAULT, LOGS, ROOM, STATUS, Played, in_rooms


class Slow(Played):
    """One whose room lets us wait."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.reflects = asyncio.Event()

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        self.asked.set()
        await self.reflects.wait()
        return await super().say(body, timeout_seconds)


async def _refused(
    played: Played, message: str = "hello", rate: RateLimiter | None = None
) -> ToolError:
    with pytest.raises(ToolError) as refusal:
        await xmpp_send(played.link, rate or RateLimiter(60), message=message)
    return refusal.value


async def test_what_was_sent_has_the_proof_that_it_was_heard() -> None:
    played = Played()
    sent = await xmpp_send(played.link, RateLimiter(60), message="hello")
    assert render(sent) == {
        "sent": True,
        "to": ROOM,
        "message": "hello",
        "id": "m1",
        "stanzaId": "s1",
        "reflectedAt": "1970-01-01T00:00:01.500Z",
        "roundTripMs": 12.346,
        "cursor": "epoch-1",
    }
    assert played.said == [("hello", 10)]


async def test_a_body_that_cannot_be_sent_is_the_callers_mistake() -> None:
    played = Played()
    refusal = await _refused(played, "")
    assert isinstance(refusal, ArgumentError)
    assert refusal.condition == "bad-request"
    assert "empty" in refusal.message
    assert played.said == []


async def test_out_of_the_room_the_cause_is_told() -> None:
    picture = dataclasses.replace(STATUS, phase=Phase.WAITING, last_error=LastError(FAULT, 0.0))
    refusal = await _refused(Played(picture, refusal=NotInRoomError()))
    assert not isinstance(refusal, ArgumentError)
    assert refusal.message == f"Not in the room {ROOM} (phase waiting): Nothing listens there."
    assert (refusal.condition, refusal.hint) == (FAULT.condition, FAULT.hint)


async def test_on_the_way_into_the_room_it_is_told_to_wait() -> None:
    picture = dataclasses.replace(STATUS, phase=Phase.SECURING)
    refusal = await _refused(Played(picture, refusal=NotInRoomError()))
    assert refusal.condition == "recipient-unavailable"
    assert "securing" in refusal.message


async def test_without_settings_the_status_is_named() -> None:
    picture = dataclasses.replace(STATUS, phase=Phase.UNCONFIGURED)
    refusal = await _refused(Played(picture, room_jid="", refusal=NotInRoomError()))
    assert refusal.condition == "unconfigured"
    assert "xmppStatus" in refusal.hint


async def test_a_returned_message_has_the_rooms_words_and_the_notice() -> None:
    fault = Fault("forbidden", 'The room says "no".', "Ask for voice.", quotes=True)
    refusal = await _refused(Played(refusal=BouncedError(fault)))
    assert refusal.condition == "forbidden"
    assert refusal.message == f'The room says "no". {NOTICE}'
    assert refusal.hint == "Ask for voice."


async def test_a_message_that_did_not_come_back_is_not_claimed_either_way() -> None:
    refusal = await _refused(Played(refusal=NotReflectedError(FAULT)))
    assert refusal.condition == FAULT.condition
    assert "not known whether it was heard" in refusal.message
    assert "before sending it again" in refusal.hint


async def test_a_message_that_was_never_handed_over_is_said_to_be_not_sent() -> None:
    refusal = await _refused(Played(refusal=NotSentError(FAULT)))
    assert refusal.condition == FAULT.condition
    assert refusal.message.startswith("Not sent: ")
    assert "not known" not in refusal.message
    assert "again once xmppStatus says connected" in refusal.hint


async def test_a_message_over_the_rate_is_refused_with_the_time_to_wait() -> None:
    played, rate = Played(), RateLimiter(2, "the environment")
    for message in ("one", "two"):
        await xmpp_send(played.link, rate, message=message)
    refusal = await _refused(played, "three", rate)
    assert not isinstance(refusal, ArgumentError)
    assert refusal.condition == "policy-violation"
    assert refusal.message.startswith("Not sent: 2 messages a minute may be sent")
    assert refusal.message.endswith("may be sent in 30 s.")
    assert "in 30 s" in refusal.hint
    assert refusal.hint.endswith("sets the rate: BRIDGE_SEND_RATE in the environment.")
    assert [body for body, _ in played.said] == ["one", "two"]


async def test_what_is_not_handed_to_the_room_costs_nothing() -> None:
    rate = RateLimiter(1)
    for kept_out in (NotInRoomError(), NotSentError(FAULT), NotInRoomError()):
        outside = Played(refusal=kept_out)
        assert (await _refused(outside, rate=rate)).condition != "policy-violation"
        assert (await _refused(Played(), "", rate)).condition == "bad-request"
    await xmpp_send(Played().link, rate, message="hello")
    assert "1 message a minute" in (await _refused(Played(), rate=rate)).message
    assert (await _refused(Played(), "", rate)).condition == "bad-request"


@pytest.mark.parametrize("failure", [BouncedError(FAULT), NotReflectedError(FAULT)])
async def test_what_the_room_was_handed_counts_whatever_became_of_it(failure: Exception) -> None:
    rate = RateLimiter(1)
    await _refused(Played(refusal=failure), rate=rate)
    assert (await _refused(Played(), rate=rate)).condition == "policy-violation"


async def test_of_two_calls_at_once_only_one_takes_the_last_token() -> None:
    played, rate = Slow(), RateLimiter(1)
    link = played.link
    first = asyncio.create_task(xmpp_send(link, rate, message="first"))
    await played.asked.wait()
    assert (await _refused(played, "second", rate)).condition == "policy-violation"
    played.reflects.set()
    assert (await first).sent
    assert [body for body, _ in played.said] == ["first"]


async def test_a_message_goes_to_the_room_that_is_named() -> None:
    played = in_rooms(ROOM, LOGS)
    (logs,) = played.further
    for room, named in ((None, ROOM), ("logs", LOGS), (LOGS.upper(), LOGS)):
        sent = await xmpp_send(played.link, RateLimiter(60), message="hello", room=room)
        assert sent.to == named
    assert ([len(one.said) for one in (played, logs)]) == [1, 2]
    with pytest.raises(ArgumentError, match="no room of the settings"):
        await xmpp_send(played.link, RateLimiter(60), message="hello", room="nowhere")
    logs.picture = dataclasses.replace(STATUS, phase=Phase.WAITING)
    logs.refusal = NotInRoomError()
    with pytest.raises(ToolError, match=f"Not in the room {LOGS} yet"):
        await xmpp_send(played.link, RateLimiter(60), message="hello", room=LOGS)


async def test_all_rooms_have_one_rate() -> None:
    played, rate = in_rooms(ROOM, LOGS), RateLimiter(1)
    await xmpp_send(played.link, rate, message="hello", room=LOGS)
    with pytest.raises(ToolError) as refusal:
        await xmpp_send(played.link, rate, message="hello")
    assert refusal.value.condition == "policy-violation"
