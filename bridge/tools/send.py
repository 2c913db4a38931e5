"""Sending to a room: at most so many messages a minute, each with the proof that it was heard."""

import math
import time
from dataclasses import dataclass, replace
from typing import Annotated

from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import ArgumentError, ToolError, tool
from bridge.text import iso
from bridge.tools.entries import (
    MARK_BYTES,
    RESULT_BYTES,
    Escaped,
    OptionalFlag,
    cut,
    json_size,
    sanitized,
)
from bridge.tools.link import RoomLink, RoomName, failed, not_in_room
from bridge.xmpp.errors import NotInRoomError, UnsendableError
from bridge.xmpp.faults import BouncedError, NotReflectedError, NotSentError
from bridge.xmpp.message_body import MAX_BODY_BYTES, check_body

MAX_WAIT_SECONDS = 50
"""Clients give up on a tool call after a minute."""

TOLERANCE_SECONDS = 1e-6
"""Whoever waits as long as the refusal said is let through, whatever floats make of the sum."""

SECONDS = 60.0
"""The rate is one a minute, and a minute's worth may go at once."""


class RateLimiter:
    """Lets `per_minute` messages go in a minute, on average, and as many at once after a rest."""

    def __init__(self, per_minute: int, set_by: str = "") -> None:
        self.read_only_in = ""
        """Where BRIDGE_READ_ONLY was set after the start, when the settings were read anew."""
        self._at = 0.0
        self._missing = 0.0
        """How many seconds after `_at` the bucket is full again."""
        self.set_rate(per_minute, set_by)

    def set_rate(self, per_minute: int, set_by: str) -> None:
        """Let so many messages go from now on; `set_by` is where that is set, if it is."""
        self.rate = f"{per_minute} message{'s' * (per_minute > 1)} a minute"
        self.setting = "BRIDGE_SEND_RATE" + f" in {set_by}" * bool(set_by)
        """The setting, and where it is set if it is, for who has to change it."""
        self._interval = SECONDS / per_minute

    def take(self, now: float) -> float:
        """Take a token and return 0; or take none, and return the seconds until there is one.

        `now` is in seconds, of any clock that is not set back.
        """
        self._missing = max(0.0, self._missing - (now - self._at))
        self._at = now
        wait = self._missing + self._interval - SECONDS
        if wait > TOLERANCE_SECONDS:
            return wait
        self._missing += self._interval
        return 0.0

    def give_back(self) -> None:
        """Return a token that was taken for nothing."""
        self._missing -= self._interval


@dataclass(eq=False)
class Sent:
    """The proof that the room heard it."""

    sent: Annotated[bool, "the room sent the message back to us"]
    to: str
    message: str
    id: str
    stanza_id: Annotated[str | None, "the room's own id for it"]
    reflected_at: str
    round_trip_ms: float
    cursor: str
    truncated: OptionalFlag = None
    escaped: Escaped = None


@tool("xmppSend", title="Send to the XMPP room")
async def xmpp_send(
    link: RoomLink,
    limiter: RateLimiter,
    /,
    message: Annotated[str, f"plain text, 1 to {MAX_BODY_BYTES} bytes of UTF-8"],
    timeout_seconds: Annotated[
        float, Bounds(minimum=0.1, maximum=MAX_WAIT_SECONDS), "how long to wait for the room"
    ] = 10,
    room: RoomName = None,
) -> Sent:
    """Say something in the chat room, where everybody in it reads it.

    Returns once the room has sent the message back (`sent: true`), with the round-trip time;
    fails if it did not, with the reason. Nothing is queued or sent twice. While the bridge is
    still joining for the first time it waits for that; otherwise it must be in the room. So many
    messages a minute are let through; the error for one more says when to try again. Where the
    bridge has several rooms, it goes to the default room unless `room` names another.
    """
    membership = link.room(room)
    if limiter.read_only_in:
        raise ToolError(
            "Not sent: nothing may be sent since the settings were read anew.",
            condition="not-allowed",
            hint=f"Who runs the bridge has set BRIDGE_READ_ONLY in {limiter.read_only_in}.",
        )
    try:
        check_body(message)
        # Taken before there is anything to wait for: of two calls at once, one gets the last.
        if wait := limiter.take(time.monotonic()):
            seconds = math.ceil(wait)
            raise ToolError(
                f"Not sent: {limiter.rate} may be sent, and these are used up; the next may be "
                f"sent in {seconds} s.",
                condition="policy-violation",
                hint=f"Try again in {seconds} s. Who runs the bridge sets the rate: "
                f"{limiter.setting}.",
            )
        reflection = await membership.say(message, timeout_seconds)
    except UnsendableError as error:
        raise ArgumentError(
            f"xmppSend: {error}",
            condition="bad-request",
            hint="Change the text, or send it in several messages.",
        ) from error
    except NotInRoomError as error:
        limiter.give_back()
        raise not_in_room(membership.name, membership.status()) from error
    except NotSentError as error:
        limiter.give_back()
        raise failed(
            error.fault,
            before="Not sent: the connection had just ended.",
            after="Send it again once xmppStatus says connected.",
        ) from error
    except BouncedError as error:
        raise failed(error.fault) from error
    except NotReflectedError as error:
        raise failed(
            error.fault,
            "The room did not send the message back, so it is not known whether it was heard:",
            after="Look at the room before sending it again.",
        ) from error
    sent = Sent(
        sent=True,
        to=membership.name,
        message="",
        id=reflection.message.id or "",
        stanza_id=reflection.message.stanza_id,
        reflected_at=iso(reflection.record.at),
        round_trip_ms=round(reflection.round_trip_seconds * 1000, 3),
        cursor=link.participant.journal.cursor_of(reflection.record.number),
    )
    result = sanitized(sent)
    # The caller's own words stay as they are, and take what room the others leave.
    kept = cut(message, RESULT_BYTES - MARK_BYTES - json_size(result))
    return replace(result, message=kept, truncated=result.truncated or kept != message or None)
