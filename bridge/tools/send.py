"""The tool that sends to a room, within a rate limit and with proof that the room got it."""

import asyncio
import math
import time
from typing import Annotated, TypeAlias

from bridge.mcp.asking import STATE_SECONDS
from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Bounds, always
from bridge.mcp.toolset import DEFAULT_DEADLINE_SECONDS, tool
from bridge.text import counted, iso, one_line, quoted
from bridge.tools.answers import MAX_ANSWERS, answer, call, doubled
from bridge.tools.entries import (
    MARK_BYTES,
    NOTICE,
    RESULT_BYTES,
    Entry,
    cut,
    fit,
    json_size,
    nonempty,
)
from bridge.tools.link import RoomLink, RoomName, failed, not_in_room
from bridge.tools.paging import Sender
from bridge.xmpp.errors import NotInRoomError, UnsendableError
from bridge.xmpp.model.faults import BouncedError, NotReflectedError, NotSentError
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.message_body import MAX_BODY_BYTES, check_body
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.publisher import NextRecord
from bridge.xmpp.muc.reflections import Reflection

MAX_WAIT_SECONDS = 50
"""The longest wait in one call, in seconds: clients give up on a call after a minute."""

MAX_SHOWN = 10 * MAX_BODY_BYTES
"""The most characters of a message that a person is asked about: enough for all of it, escaped."""

PROGRESS_SECONDS = 1.0
"""The pause between two progress notifications."""

SECOND_ANSWER_SECONDS = 1.5
"""How long a second answer is waited for: a bot that answers twice does so at once."""

TOLERANCE_SECONDS = 1e-6
"""A rounding error that is ignored, so that a caller who waited as long as the refusal said may
send."""

SECONDS = 60.0
"""The period of the rate: it is in messages a minute."""


class RateLimiter:
    """Lets `per_minute` messages a minute be sent on average, and as many at once after a pause.

    Each message takes a token. A minute brings `per_minute` tokens, and no more are ever kept.
    """

    def __init__(self, per_minute: int, rate_in: str = "") -> None:
        self.per_minute = per_minute
        self.rate_in = rate_in
        """Where BRIDGE_SEND_RATE is set, if it is."""
        self.read_only_in = ""
        """Where BRIDGE_READ_ONLY is set, if that was found when the settings were read anew."""
        self.confirm_in = ""
        """Where BRIDGE_CONFIRM_SEND is set, if it is."""
        self.full_at = 0.0
        """The time, on the clock of `take`, at which all `per_minute` tokens are there again."""

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token, 0 if there is one.

        `now` is in seconds, of any clock that is not set back.
        """
        wait = max(self.full_at, now) + SECONDS / self.per_minute - SECONDS - now
        return wait if wait > TOLERANCE_SECONDS else 0.0

    def take(self, now: float) -> float:
        """Take a token and return 0; or take none, and return the seconds until there is one."""
        wait = RateLimiter.wait(self, now)  # a subclass's `wait` may lock a file, as `take` does
        if not wait:
            self.full_at = max(self.full_at, now) + SECONDS / self.per_minute
        return wait

    def check(self, wait: float) -> None:
        """Raise `ToolError` where nothing may be sent, or only after `wait` seconds."""
        if self.read_only_in:
            raise ToolError(
                "Not sent: nothing may be sent since the settings were read anew.",
                condition="not-allowed",
                hint=f"Whoever runs the bridge has set BRIDGE_READ_ONLY in {self.read_only_in}.",
            )
        if wait:
            seconds = math.ceil(wait)
            rate = f"{counted(self.per_minute, 'message')} a minute"
            raise ToolError(
                f"Not sent: {rate} may be sent, and these are used up; the next may be sent in "
                f"{seconds} s.",
                condition="policy-violation",
                hint=f"Try again in {seconds} s. Whoever runs the bridge sets the rate: "
                f"BRIDGE_SEND_RATE{f' in {self.rate_in}' if self.rate_in else ''}.",
            )

    def give_back(self) -> None:
        """Return a token that was taken for nothing."""
        self.full_at -= SECONDS / self.per_minute


WAS_OUT = "The bridge was out of the room since, and may have missed answers. "
"""What is said where there was no answer, if the bridge did not stay in the room."""

Sent: TypeAlias = Annotated[
    dict[str, object],
    always(
        sent=bool, to=str, message=str, id=str, reflected_at=str, round_trip_ms=float, cursor=str
    ),
]
"""The result of sending: the proof that the room got the message, and the answers."""


@tool(
    "xmppSend",
    title="Send to the XMPP room",
    deadline=DEFAULT_DEADLINE_SECONDS + STATE_SECONDS,
    own_slots=True,
)
async def xmpp_send(
    link: RoomLink,
    limiter: RateLimiter,
    context: Context,
    /,
    message: Annotated[str, f"plain text, 1 to {MAX_BODY_BYTES} bytes of UTF-8"],
    timeout_seconds: Annotated[
        float, Bounds(minimum=0.1, maximum=MAX_WAIT_SECONDS), "for the room to send it back"
    ] = 10,
    await_seconds: Annotated[
        float,
        Bounds(minimum=0, maximum=MAX_WAIT_SECONDS),
        f"for answers; both together at most {MAX_WAIT_SECONDS}",
    ] = 0,
    from_: Sender = None,
    room: RoomName = None,
) -> Sent:
    """Use this to say something in the chat room, where everybody reads it, and see who answers.

    Succeeds once the room has sent the message back, else fails with the reason; nothing is queued
    or sent twice. With `awaitSeconds` it waits for `answers` (of all, or only `from`), and says
    `how` each came: public, private, encrypted, no-body, error. If none: make the call in
    `nextStep`.
    """
    if (seconds := timeout_seconds + await_seconds) > MAX_WAIT_SECONDS:
        raise ArgumentError(
            f"xmppSend: timeoutSeconds and awaitSeconds are {seconds:g} together; the most is "
            f"{MAX_WAIT_SECONDS}.",
            condition="bad-request",
            hint="Give less of one of them; xmppWait with the cursor of the result waits on.",
        )
    reflection, membership = await _said(link, limiter, context, message, timeout_seconds, room)
    answers: list[Entry] = []
    if await_seconds:
        answers = await _answers(link, reflection.record, from_, await_seconds, context)
    lists = {"answers": answers} if await_seconds else {}
    further: Entry = {}
    misspelt = ""
    if await_seconds and not any(entry["how"] == "public" for entry in answers):
        asked = {"nickname": from_} if from_ else {}
        misspelt = "" if answers else str(link.misspelt(from_, membership.name).get("hint", ""))
        hint = "" if answers else _no_answer(await_seconds, reflection.record, membership)
        step = call("xmppDiagnose", asked, link.among_several(membership.name))
        further = {**nonempty({"hint": hint}), "nextStep": step}
    warnings = [*doubled(answers, membership.status().accounts), *[misspelt] * bool(misspelt)]
    result = _proof_of(reflection, message) | {
        "to": membership.name,
        "cursor": link.participant.journal.cursor_of(reflection.record.number),
        **nonempty({"warnings": warnings}),
        **further,
    }
    if answers or misspelt:
        result["notice"] = NOTICE
    # The caller's own message is not escaped, and leaves half of the space to the answers.
    limit = RESULT_BYTES - MARK_BYTES
    left = limit - json_size(fit(result | {"message": ""}))
    kept = cut(message, left // 2 if answers else left)
    sent = fit(result, limit - json_size(kept), **lists) | {"message": kept}
    left_out = kept != message or len(sent.get("answers", ())) < len(answers)
    return sent | nonempty({"truncated": left_out})


def _no_answer(seconds: float, asked: Record, membership: Membership) -> str:
    """Return what to do if nothing answered within `seconds` what we `asked`."""
    was_out = WAS_OUT if membership.status().since > asked.at else ""
    return (
        f"No answer within {seconds:g} s. {was_out}Call xmppDiagnose with the nickname of who "
        "should have answered, or xmppWait with this cursor to wait on."
    )


async def _said(
    link: RoomLink,
    limiter: RateLimiter,
    context: Context,
    message: str,
    seconds: float,
    room: str | None,
) -> tuple[Reflection, Membership]:
    """Say something in the room, if it may be said; raises `ToolError`."""
    try:
        check_body(message)
        membership = link.room(room)
        limiter.check(limiter.wait(time.monotonic()))  # else a person would be asked in vain
        if limiter.confirm_in:
            await _confirm(context, limiter.confirm_in, membership.name, message)
        # The token is taken before the message is sent: of two calls at once, one gets the last.
        limiter.check(limiter.take(time.monotonic()))
        return await membership.say(message, seconds), membership
    except UnsendableError as error:
        raise ArgumentError(
            f"xmppSend: {error}.", condition="bad-request", hint=error.hint
        ) from error
    except NotInRoomError as error:
        limiter.give_back()
        raise not_in_room(membership.name, membership.status()) from error
    except NotSentError as error:
        limiter.give_back()
        raise failed(
            error.fault, "Not sent:", "Send it again once xmppStatus says connected."
        ) from error
    except BouncedError as error:
        raise failed(error.fault) from error
    except NotReflectedError as error:
        raise failed(
            error.fault,
            "It is not known whether the message was heard:",
            "Look at the room before sending it again.",
        ) from error


def _proof_of(reflection: Reflection, message: str) -> Entry:
    """Return how the room sent `message` back."""
    record, copy, seconds = reflection
    by_text = copy.reflects is not None
    proof: Entry = {
        "sent": True,
        "id": copy.reflects or copy.id,
        **nonempty({"stanzaId": copy.stanza_id, "proof": "text" if by_text else ""}),
        "reflectedAt": iso(record.at),
        "roundTripMs": round(seconds * 1000, 3),
    }
    if copy.body != message and not by_text:
        proof |= {"heardAs": copy.body, "notice": NOTICE}
    return proof


async def _confirm(context: Context, set_in: str, room: str, message: str) -> None:
    """Ask the person at the client whether to send this; raises `ToolError` unless they agree."""
    if not context.can_ask("elicitation/create"):
        raise ToolError(
            "Not sent: the person at the client is to be asked before each message, and this "
            "client cannot be made to ask (MCP, elicitation).",
            condition="not-allowed",
            hint="Use a client that can, such as xmpp-bridge client. Whoever runs the bridge has "
            f"set BRIDGE_CONFIRM_SEND in {set_in}.",
        )
    answer = await context.elicit(
        f"Send this to everybody in the room {one_line(room)}?\n{quoted(message, MAX_SHOWN)}",
        {"type": "object", "properties": {}},
        # It names the room, since another may become the default while the question is open.
        name=f"send to {room}",
        consent=True,
    )
    if answer.action != "accept":
        raise ToolError(
            f"Not sent: the person at the client was asked, and chose to {answer.action}.",
            condition="not-allowed",
            hint="Ask them what to say instead; do not send it again unasked.",
        )


async def _answers(
    link: RoomLink, said: Record, sender: str | None, seconds: float, context: Context
) -> list[Entry]:
    """Return the answers to what we `said` that come within `seconds`.

    After the first answer it waits `SECOND_ANSWER_SECONDS` at most. It reports progress meanwhile.
    """
    journal, loop = link.participant.journal, asyncio.get_running_loop()
    wanted = EventFilter(sender=sender)
    began = reported = loop.time()
    until, number = began + seconds, said.number
    answers: list[Entry] = []
    with NextRecord(link.participant.listen) as next_record:
        while True:
            now = loop.time()
            first = not answers
            for record in journal.of(said.room).after(number):
                number = record.number
                # If the room itself returned our message, its error has no sender.
                returned = record.event.kind == "error" and not hasattr(record.event, "sender")
                if not (returned or wanted.matches(record.event)):
                    continue
                if entry := answer(record, journal, said):
                    answers.append(entry)
            if answers and first:
                until = min(until, now + SECOND_ANSWER_SECONDS)
            if now >= until or len(answers) >= MAX_ANSWERS:
                return answers[:MAX_ANSWERS]
            if now - reported >= PROGRESS_SECONDS:
                reported = now
                came = counted(len(answers), "answer")
                context.progress(round(now - began, 3), seconds, f"{came} so far")
            await next_record.by(min(until, now + PROGRESS_SECONDS))
