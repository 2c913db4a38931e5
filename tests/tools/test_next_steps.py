"""Fourteen kinds of rooms, each played to its end by an agent that only makes the next step."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from bridge.mcp.toolset import Tool
from bridge.tools.diagnose import BRIEF_BYTES, xmpp_diagnose
from bridge.tools.occupants import xmpp_occupants
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.checks import asking
from bridge.xmpp.checks.answering import LEFT_OUT
from bridge.xmpp.checks.conduct import STAYS
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    OccupantLeft,
)
from bridge.xmpp.model.room import Occupant, RoomStatus
from bridge.xmpp.muc.reflections import Reflection
from tests.capture import logs
from tests.capture.logs import IN, LOGIN, ROOM, timed
from tests.mcp.sample_tools import QUIET
from tests.tools.played import STATUS, arguments, fitting
from tests.tools.standing import Asked, Standing

MAX_CALLS, MAX_BYTES = 18, 25_000
"""Of all fourteen rooms together."""

WATCHED = 600.0
"""Seconds that the bridge has been in the room."""

CALLS: Mapping[str, Tool] = {"xmppDiagnose": xmpp_diagnose, "xmppOccupants": xmpp_occupants}


def said(nickname: str, body: str = "", **more: Any) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body, **more)


def came(nickname: str = "bot", affiliation: str = "none") -> OccupantJoined:
    return OccupantJoined(f"{ROOM}/{nickname}", nickname, "participant", affiliation)


def left(status: str | None = None, *codes: int, nickname: str = "bot") -> OccupantLeft:
    return OccupantLeft(f"{ROOM}/{nickname}", nickname, codes=frozenset(codes), status=status)


def secret(nickname: str) -> MessageReceived:
    return said(nickname, encrypted="OMEMO")


def occupant(nickname: str, affiliation: str = "none", jid: str | None = None) -> Occupant:
    address = f"{ROOM}/{nickname}"
    return Occupant(address, nickname, "participant", affiliation, None, real_jid=jid)


@dataclass(frozen=True)
class Kind:
    """A room in which a bot does not do what is expected of it, and what has to be said."""

    outcome: str
    words: str
    """In the last verdict, or the hint."""
    events: Sequence[tuple[float, Event]] = ()
    """With the seconds since the bridge came."""
    there: Sequence[Occupant] = (occupant("bot"), occupant("Carl"), occupant("Alice"))
    log: Sequence[str] = ()
    """The bot's own log, if the room does not show the cause."""
    logged: str = ""
    """What the verdict has if that log is known."""
    persistent: bool | None = True
    dead: frozenset[str] = frozenset()
    """Who does not answer pings."""


PING, PONG = said("Carl", "!ping"), said("bot", "pong")
HEALTHY = [(10.0, PING), (10.043, PONG)]
UNHEARD = [(20.0, said("Alice", "!ping")), (40.0, said("Alice", "!ping"))]
OTHERS = (occupant("Carl"), occupant("Alice"))
CHANGED = "<status code='210'/>"
ALICE = logs.said("Alice", "!ping")
KINDS: dict[str, Kind] = {
    "an alarm storm of two bots": Kind(
        "cause",
        "answer each other",
        [
            (100 + 0.3 * turn + 0.05 * number, said(who, f"ALARM {turn} {number}"))
            for turn in range(20)
            for who in [("bot", "pager")[turn % 2]]
            for number in range(2)
        ],
        (occupant("bot"), occupant("pager")),
    ),
    "an idle cut": Kind(
        "cause",
        "every 1 min 40 s",
        [
            (100.0 * number + pause, event)
            for number in range(1, STAYS + 1)
            for pause, event in ((0.0, left("SSL: unexpected eof")), (1.5, came()))
        ],
    ),
    "a restart, again and again": Kind(
        "cause",
        "no reason was given",
        [
            (90.0 * number + pause, event)
            for number in range(1, STAYS + 1)
            for pause, event in ((0.0, left()), (3.0, came()))
        ],
    ),
    "history replayed": Kind(
        "cause",
        "answered what had been said before it came",
        [*HEALTHY, (50.0, left()), (60.0, came()), (60.1, PONG)],
    ),
    "encrypted commands": Kind(
        "cause",
        "with encryption",
        [*HEALTHY, *((60.0 + number, secret("Alice")) for number in range(LEFT_OUT + 1))],
    ),
    "a ghost": Kind(
        "cause",
        "left over from a lost connection",
        there=(occupant("bot", jid="b@x/1"), occupant("bot-2", jid="b@x/2")),
        dead=frozenset({"bot"}),
    ),
    "a temporary room made anew": Kind(
        "cause",
        '" made it anew',
        [(5.0, came()), (9.0, left()), (9.5, left(nickname="Carl")), (30.0, came("bot", "owner"))],
        (occupant("bot", "owner"), occupant("Alice")),
        persistent=False,
    ),
    "type chat": Kind(
        "unknown",
        "--log FILE",
        UNHEARD,
        log=[*IN, ALICE, logs.says("pong", type_="chat"), logs.bounce("bad-request")],
        logged="of type chat, to the whole room",
    ),
    "a character of a link title": Kind(
        "unknown",
        "--log FILE",
        [*HEALTHY, (30.0, said("Alice", "https://x.example/1")), (30.2, left("stream error"))],
        OTHERS,
        [*IN, logs.says("Title: \x0b"), logs.stream_error("not-well-formed")],
        "ended",
    ),
    "a stanza too big": Kind(
        "unknown",
        "--log FILE",
        [*HEALTHY, (30.0, said("Alice", "!dump")), (30.2, left("Disconnected: closed", 333))],
        OTHERS,
        [*IN, logs.says("x" * 9_000), logs.stream_error("policy-violation")],
        "ended",
    ),
    "a nickname changed by the room": Kind(
        "well",
        '"bot1" answered',
        [(10.0, PING), (10.04, said("bot1", "pong"))],
        (occupant("bot1"), occupant("Carl")),
        [
            *LOGIN,
            logs.ASK,
            logs.JOIN[1].replace("/bot'", "/bot1'").replace("</x>", f"{CHANGED}</x>"),
        ],
        "bot1",
    ),
    "a moved host without SRV": Kind(
        "unknown",
        "--log FILE",
        there=OTHERS,
        log=[*LOGIN[:2], logs.stream_error("host-gone")],
        logged="no longer serves the domain",
    ),
    "a join without the muc element": Kind(
        "unknown",
        "--log FILE",
        there=OTHERS,
        log=[*LOGIN, f">>> <presence to='{ROOM}/bot'/>", logs.says("hello"), logs.bounce("x")],
        logged="muc",
    ),
    "an exception in one command": Kind(
        "unknown",
        "--log FILE",
        [*HEALTHY, (60.0, said("Alice", "!sun")), (90.0, said("Alice", "!sun"))],
        log=[*IN, logs.said("Alice", "!sun"), "pause 20", *[logs.said("Carl", "so")] * 6],
        logged="silent",
    ),
    "a false alarm": Kind("well", '"bot" answered "!ping" of "Carl" after 43 ms', HEALTHY),
}
BUDGETED = [name for name in KINDS if name != "a restart, again and again"]


class Talking(Standing):
    """A room that passes on what the bridge says."""

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        self.publish(MessageSent(self.occupant, "McpDebug", body, "m1"), at=time.time())
        heard = MessageReceived(self.occupant, "McpDebug", body, id="m1", own=True)
        return Reflection(self.publish(heard, at=time.time()), heard, 0.001)


def room_of(kind: Kind) -> Standing:
    def answer(to: str, _: str) -> Element | None:
        return None if to.partition("/")[2] in kind.dead else Element("iq", {"type": "result"})

    own = replace(STATUS.occupants[0], jid=f"{ROOM}/McpDebug")
    status: RoomStatus = replace(STATUS, occupants=(own, *kind.there), persistent=kind.persistent)
    played = Talking(status, ROOM, f"{ROOM}/McpDebug", stream=Asked(answer, f"{ROOM}/McpDebug"))
    began = time.time() - WATCHED
    played.publish(came("Alice"), at=began)
    for seconds, event in kind.events:
        played.publish(event, at=began + seconds)
    return played


async def follow(kind: Kind, log: Path | None = None) -> list[dict[str, Any]]:
    """The results of all calls, of which each but the first is the next step of the one before."""
    link = room_of(kind).link
    link.bot_logs = {"bot": log} if log else {}
    results = list[dict[str, Any]]()
    step: Any = {"tool": "xmppDiagnose", "arguments": {"nickname": "bot"}}
    while step and "tool" in step and len(results) < MAX_CALLS:
        if step["tool"] == "xmppSend":
            given = (link, RateLimiter(60), QUIET)
            told = await xmpp_send(*given, **arguments(xmpp_send, step["arguments"]))
        else:
            tool = CALLS[step["tool"]]
            told = fitting(tool, await tool(link, **arguments(tool, step["arguments"])))
        results.append({**told})
        assert len(json.dumps(told)) <= BRIEF_BYTES
        step = told.get("nextStep") if told.get("outcome") != "cause" else None
    return results


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PING_SECONDS", 0.05)


@pytest.mark.parametrize("name", KINDS)
async def test_the_next_steps_lead_to_the_cause_or_to_the_bots_log(name: str) -> None:
    kind = KINDS[name]
    *_, last = await follow(kind)
    assert last["outcome"] == kind.outcome, last
    assert kind.words in f"{last['verdict']} {last.get('hint')}", last


@pytest.mark.parametrize("name", KINDS)
async def test_with_the_bots_log_the_cause_is_named(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    log = tmp_path / "bot.log"
    log.write_text("".join(f"{line}\n" for line in timed(*(kind.log or IN))))
    results = await follow(kind, log)
    assert len(results) <= 2
    last = results[-1]
    assert last["outcome"] == ("cause" if kind.logged else kind.outcome), last
    assert (kind.logged or kind.words) in last["verdict"], last


async def test_all_fourteen_take_few_calls_and_bytes() -> None:
    assert len(BUDGETED) == 14
    results = [result for name in BUDGETED for result in await follow(KINDS[name])]
    assert len(results) <= MAX_CALLS
    assert sum(len(json.dumps(result)) for result in results) <= MAX_BYTES
