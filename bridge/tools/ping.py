"""Whether somebody answers, and how fast: the server, the room, an occupant, any address."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import tool
from bridge.tools.entries import ESCAPED, NOTICE, OptionalFlag, sanitized
from bridge.tools.link import RoomLink, RoomName, connection_in, failed
from bridge.tools.targets import MAX_TARGET_CHARACTERS, find

if TYPE_CHECKING:
    from bridge.xmpp.iq_errors import DecodedError

ANSWER_SECONDS = 15.0
"""For the answer: as long as the bridge gives its own pings."""


@dataclass(eq=False)
class AnswerError:
    """An error answer, or none at all, decoded."""

    condition: Annotated[str, "in the standard's own words"]
    message: str
    hint: Annotated[str, "what to make of it"]


@dataclass(eq=False)
class Pong:
    """What came back."""

    target: Annotated[str, "as asked"]
    address: Annotated[str, "the JID that was pinged"]
    round_trip_ms: Annotated[float | None, "of whatever answer came, an error too; null: none"]
    reachable: Annotated[bool, "whether the answer proves that the target is there"]
    in_room: Annotated[
        str | None, ABSENT_IF_NONE, "for self: in, out, or undecided where the answer cannot tell"
    ] = None
    error: Annotated[AnswerError | None, ABSENT_IF_NONE] = None
    truncated: OptionalFlag = None
    escaped: Annotated[bool | None, ABSENT_IF_NONE, ESCAPED] = None
    notice: str = NOTICE


@tool("xmppPing", title="Ping over XMPP", read_only=True)
async def xmpp_ping(
    link: RoomLink,
    /,
    target: Annotated[
        str,
        Bounds(min_length=1, max_length=MAX_TARGET_CHARACTERS),
        "server, room, self, the nickname of somebody in the room, or a JID",
    ],
    room: RoomName = None,
) -> Pong:
    """Find out whether somebody answers over XMPP (XEP-0199), and how many milliseconds it takes.

    `server` is the bridge's own server, `room` the room, `self` asks the room whether it holds
    the bridge for one of its occupants (XEP-0410, see `inRoom`); a nickname asks that person's
    client. Somebody called server, room or self, or by a name with an @, is reached by their full
    JID, `room@service/nickname`. An error answer or a silence of 15 s is a result, with `error`
    saying what it means; often an error answer still proves that the target is there
    (`reachable`). Fails when the bridge is not in the room, or when there is no such target.
    """
    from bridge.xmpp import iq_errors, stanzas
    from bridge.xmpp.faults import ConnectionFailedError
    from bridge.xmpp.iq import IqError
    from bridge.xmpp.iq_errors import TargetKind
    from bridge.xmpp.keepalive import Verdict, verdict

    connection = connection_in(link.room(room))
    whom, address = find(link, target, room)
    meaning: DecodedError | None = None
    found = Verdict.IN
    answered = True
    started = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await connection.request("get", address, stanzas.ping())
    except IqError as refused:
        error = refused.error
        meaning = iq_errors.of_error(error.condition, error.text, whom, address, "pings")
        found = verdict(error.condition)
    except TimeoutError:
        answered = False
        meaning = iq_errors.of_silence(whom, address, ANSWER_SECONDS)
        found = Verdict.UNDECIDED
    except ConnectionFailedError as ended:
        raise failed(ended.fault, "The connection ended before the answer came:") from ended
    taken = round((time.perf_counter() - started) * 1000, 3)
    pong = Pong(
        target=target,
        address=address,
        round_trip_ms=taken if answered else None,
        reachable=meaning is None or meaning.reachable,
        in_room=found.value if whom is TargetKind.SELF else None,
        error=None if meaning is None else _error(meaning),
    )
    return sanitized(pong)


def _error(meaning: "DecodedError") -> AnswerError:
    return AnswerError(meaning.condition, meaning.message, meaning.hint)
