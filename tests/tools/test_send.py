import asyncio
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bridge.mcp.asking import STATE_SECONDS, Question
from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.jsonrpc import Object
from bridge.tools import send
from bridge.tools.answers import MAX_ANSWERS
from bridge.tools.entries import NOTICE, RESULT_BYTES
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.events import MessageReceived, Phase
from bridge.xmpp.model.faults import BouncedError, Fault, NotReflectedError, NotSentError
from bridge.xmpp.model.room import LastError
from bridge.xmpp.muc.reflections import Reflection
from tests.mcp.sample_tools import UNASKED
from tests.tools.played import (
    FAULT,
    LOGS,
    ROOM,
    STATUS,
    Answering,
    Played,
    arguments,
    fitting,
    in_rooms,
    wire,
)

SECONDS = 30.0
"""Limit for a call that waits for answers."""


def _context(*told: list[tuple[float, float | None, str | None]]) -> Context:
    """The caller; what it is told of progress goes into the list."""
    report = told[0].append if told else lambda _: None
    return Context(lambda *it: report(it), lambda *_: None, *UNASKED)


async def _send(played: Played, rate: RateLimiter, **given: object) -> dict[str, Any]:
    """What a client sees of the result."""
    arguments_ = arguments(xmpp_send, given)
    return fitting(xmpp_send, await xmpp_send(played.link, rate, _context(), **arguments_))


async def _refused(
    played: Played, message: str = "hello", rate: RateLimiter | None = None, **more: object
) -> ToolError:
    with pytest.raises(ToolError) as refusal:
        await _send(played, rate or RateLimiter(60), message=message, **more)
    return refusal.value


async def test_what_was_sent_has_the_proof_that_it_was_heard() -> None:
    played = Played()
    sent = await _send(played, RateLimiter(60), message="hello")
    assert sent == {
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


async def test_a_body_that_cannot_be_sent_is_the_callers_mistake_wherever_it_is_to_go() -> None:
    played = Played()
    refusal = await _refused(played, "   ", room="nowhere@rooms.example.org")
    assert isinstance(refusal, ArgumentError)
    assert refusal.condition == "bad-request"
    assert "empty" in refusal.message
    assert refusal.hint == "Give it some text."
    refusal = await _refused(played, "\0")
    assert refusal.hint == "Remove these characters."
    refusal = await _refused(played, "x" * 60_001)
    assert refusal.hint == "Send it in several messages."
    assert played.said == []


async def test_out_of_the_room_the_cause_is_told() -> None:
    picture = dataclasses.replace(STATUS, phase=Phase.WAITING, last_error=LastError(FAULT, 0.0))
    refusal = await _refused(Played(picture, refusal=NotInRoomError()))
    assert not isinstance(refusal, ArgumentError)
    assert (
        refusal.message
        == f"The bridge is not in the room {ROOM} (phase waiting): Nothing listens there."
    )
    assert (refusal.condition, refusal.hint) == (FAULT.condition, FAULT.hint)


QUOTING = Fault("forbidden", 'The room says "no".', "Ask for voice.", quotes=True)


@pytest.mark.parametrize(
    ("failure", "condition", "said", "hint"),
    [
        (BouncedError(QUOTING), "forbidden", f'^The room says "no". {NOTICE}$', "Ask for voice."),
        (NotReflectedError(FAULT), FAULT.condition, "not known whether", "before sending it again"),
        (NotSentError(FAULT), FAULT.condition, "^Not sent: ", "once xmppStatus says connected"),
    ],
)
async def test_what_became_of_a_message_that_was_not_heard_is_told(
    failure: Exception, condition: str, said: str, hint: str
) -> None:
    refusal = await _refused(Played(refusal=failure))
    assert refusal.condition == condition
    assert re.search(said, refusal.message)
    assert hint in refusal.hint


async def test_a_message_over_the_rate_is_refused_with_the_time_to_wait() -> None:
    played, rate = Played(), RateLimiter(2, "the environment")
    for message in ("one", "two"):
        await _send(played, rate, message=message)
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
    await _send(Played(), rate, message="hello")
    assert "1 message a minute" in (await _refused(Played(), rate=rate)).message
    assert (await _refused(Played(), "", rate)).condition == "bad-request"


@pytest.mark.parametrize("failure", [BouncedError(FAULT), NotReflectedError(FAULT)])
async def test_what_the_room_was_handed_counts_whatever_became_of_it(failure: Exception) -> None:
    rate = RateLimiter(1)
    await _refused(Played(refusal=failure), rate=rate)
    assert (await _refused(Played(), rate=rate)).condition == "policy-violation"


class Slow(Played):
    """One whose room takes a turn of the loop."""

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        await asyncio.sleep(0)
        return await super().say(body, timeout_seconds)


async def test_of_two_calls_at_once_only_one_takes_the_last_token() -> None:
    played, rate = Slow(), RateLimiter(1)
    calls = (_send(played, rate, message=message) for message in ("first", "second"))
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    assert not isinstance(first, BaseException)
    assert isinstance(second, ToolError)
    assert [body for body, _ in played.said] == ["first"]


async def test_a_message_goes_to_the_room_that_is_named() -> None:
    played = in_rooms(ROOM, LOGS)
    (logs,) = played.further
    rate = RateLimiter(3)
    for room, named in ((None, ROOM), ("logs", LOGS), (LOGS.upper(), LOGS)):
        assert (await _send(played, rate, message="hello", room=room))["to"] == named
    for room in (ROOM, LOGS):  # all rooms together have one rate
        assert (await _refused(played, rate=rate, room=room)).condition == "policy-violation"
    assert ([len(each.said) for each in (played, logs)]) == [1, 2]
    with pytest.raises(ArgumentError, match="no room of the settings"):
        await _send(played, RateLimiter(60), message="hello", room="nowhere")
    logs.picture = dataclasses.replace(STATUS, phase=Phase.WAITING)
    logs.refusal = NotInRoomError()
    with pytest.raises(ToolError, match=f"The bridge is not in the room {LOGS} yet"):
        await _send(played, RateLimiter(60), message="hello", room=LOGS)


def _answering(*bodies: str) -> Played:
    played = Answering()
    played.answers = [MessageReceived(f"{ROOM}/Wilma", "Wilma", body) for body in bodies]
    return played


async def _answers(played: Played, **given: object) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS):  # far below the time that is awaited
        return await _send(played, RateLimiter(60), message="!ping", **given)


async def test_a_second_answer_is_seen_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "SECOND_ANSWER_SECONDS", 0.05)
    sent = await _answers(_answering("pong", "pong"), awaitSeconds=40)
    assert [(each["sender"], each["body"], each["how"]) for each in sent["answers"]] == [
        ("Wilma", "pong", "public")
    ] * 2
    assert sent["notice"] == NOTICE
    assert sent["warnings"] == ['"Wilma" said the same twice.']


async def test_no_answer_is_an_empty_list_when_the_time_is_over() -> None:
    sent = await _answers(Played(), awaitSeconds=0.01)
    assert sent["answers"] == []
    assert sent["hint"].startswith("No answer within 0.01 s. Call xmppDiagnose ")
    assert sent["nextStep"] == {"tool": "xmppDiagnose", "arguments": {}}
    named = await _answers(Played(), awaitSeconds=0.01, **{"from": "Robot"})
    assert named["nextStep"]["arguments"] == {"nickname": "Robot"}
    assert not {"notice", "warnings"} & sent.keys()
    misspelt = await _answers(Played(), awaitSeconds=0.01, **{"from": "mcpdebug"})
    told = 'Nobody here is called "mcpdebug"; in the room is "McpDebug".'
    assert (misspelt["warnings"], misspelt["notice"]) == ([told], NOTICE)


async def test_only_the_answers_of_one_are_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "SECOND_ANSWER_SECONDS", 0.01)
    for sender, bodies in (("Wilma", ["pong"]), ("wilma", []), (f"{ROOM}/Wilma", ["pong"])):
        sent = await _answers(_answering("pong"), awaitSeconds=0.05, **{"from": sender})
        assert [each["body"] for each in sent["answers"]] == bodies


async def test_answers_in_another_room_are_none() -> None:
    played = in_rooms(ROOM, LOGS)
    sending = asyncio.create_task(_answers(played, awaitSeconds=0.05))
    while not played.listeners:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    played.hear("pong", room=LOGS)
    assert (await sending)["answers"] == []


async def test_a_flood_of_answers_ends_it_at_once_and_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send, "SECOND_ANSWER_SECONDS", 40.0)
    flood = ["\u202e" * 4_000 + str(number) for number in range(2 * MAX_ANSWERS)]
    sent = await _answers(_answering(*flood), awaitSeconds=40)
    assert 1 < len(sent["answers"]) <= MAX_ANSWERS
    assert len(json.dumps(sent)) <= RESULT_BYTES
    assert all(each["truncated"] and each["escaped"] for each in sent["answers"])


async def test_who_awaits_is_told_how_long_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "PROGRESS_SECONDS", 0.01)
    told: list[tuple[float, float | None, str | None]] = []
    given = arguments(xmpp_send, {"message": "hello", "awaitSeconds": 0.1})
    played = Played()
    await xmpp_send(played.link, RateLimiter(60), _context(told), **given)
    assert len(told) > 2
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[0][1:] == (0.1, "0 answers so far")
    assert played.listeners == []


async def test_both_times_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "SECOND_ANSWER_SECONDS", 0.01)
    played = _answering("pong")
    with pytest.raises(ArgumentError, match="together; the most is 50"):
        await _answers(played, timeoutSeconds=10, awaitSeconds=40.5)
    assert played.said == []
    assert (await _answers(played, timeoutSeconds=10, awaitSeconds=40))["answers"]


# With BRIDGE_CONFIRM_SEND


def _asked(
    action: str, meanwhile: Callable[[], object] = lambda: None
) -> tuple[Context, list[Mapping[str, Question]]]:
    """A caller whose user answers so, `meanwhile` this happens, and what is asked of it."""
    asked: list[Mapping[str, Question]] = []

    async def ask(questions: Mapping[str, Question], seconds: float) -> Mapping[str, Object]:
        assert seconds == STATE_SECONDS
        asked.append(questions)
        meanwhile()
        return {name: {"action": action} for name in questions}

    able = "elicitation/create".__eq__
    return Context(lambda *_: None, lambda *_: None, able, ask), asked


def _confirming(per_minute: int = 60) -> RateLimiter:
    rate = RateLimiter(per_minute)
    rate.confirm_in = "the environment"
    return rate


async def test_a_person_who_accepts_was_shown_the_message_escaped_and_the_room() -> None:
    played, (context, asked) = Played(), _asked("accept")
    text = 'yes"\n\u202eno' + "x" * 50_000
    sent = wire(await xmpp_send(played.link, _confirming(), context, message=text))
    assert sent["sent"] is True
    assert played.said == [(text, 10)]
    ((name, question),) = asked[0].items()
    shown = str(question.params["message"])
    first, message = shown.split("\n")
    assert (first, name) == (f"Send this to everybody in the room {ROOM}?", f"send to {ROOM}")
    assert message.startswith('"yes')
    assert message.endswith('xxx" (U+202E RIGHT-TO-LEFT OVERRIDE)')
    assert "\u202e" not in shown
    assert question.consent


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_what_a_person_does_not_want_sent_is_not_and_costs_nothing(action: str) -> None:
    played, (context, _) = Played(), _asked(action)
    rate = _confirming(1)
    with pytest.raises(ToolError, match=f"chose to {action}") as refusal:
        await xmpp_send(played.link, rate, context, message="hello")
    assert refusal.value.condition == "not-allowed"
    assert played.said == []
    assert rate.take(0.0) == 0.0


async def test_nobody_is_asked_about_what_cannot_be_sent() -> None:
    played, (context, asked) = Played(), _asked("accept")
    rate = _confirming(1)
    await xmpp_send(played.link, rate, context, message="hello")
    with pytest.raises(ToolError, match="are used up"):
        await xmpp_send(played.link, rate, context, message="and again")
    assert len(asked) == 1


async def test_what_was_forbidden_while_a_person_was_asked_is_not_sent() -> None:
    played, rate = Played(), _confirming()
    context, _ = _asked("accept", lambda: setattr(rate, "read_only_in", "the environment"))
    with pytest.raises(ToolError, match="nothing may be sent"):
        await xmpp_send(played.link, rate, context, message="hello")
    assert played.said == []


async def test_a_client_that_cannot_ask_sends_nothing_and_is_told_why() -> None:
    played = Played()
    refusal = await _refused(played, rate=_confirming())
    assert "cannot be made to ask" in refusal.message
    assert "BRIDGE_CONFIRM_SEND in the environment" in refusal.hint
    assert played.said == []
