"""Rooms of further kinds, broken and healthy, of which the bridge asked nothing itself before."""

import time
from dataclasses import replace

import pytest

from bridge.tools.diagnose import xmpp_diagnose
from bridge.xmpp.checks import asking
from bridge.xmpp.model.events import Event, MessageReceived, MessageSent, OccupantLeft
from bridge.xmpp.model.room import Occupant
from tests.capture.logs import ROOM
from tests.tools.played import fitting
from tests.tools.test_next_steps import (
    HEALTHY,
    OTHERS,
    Kind,
    came,
    follow,
    left,
    occupant,
    room_of,
    said,
    secret,
)

Acts = list[tuple[float, Event]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PING_SECONDS", 0.05)


def asked(times: int, *answers: Event, who: str = "Carl", what: str = "!ping") -> Acts:
    """So many commands, each with these answers."""
    return [
        (100.0 * number + 0.05 * place, event)
        for number in range(times)
        for place, event in enumerate((said(who, what), *answers))
    ]


def put_out(*codes: int, reason: str | None = None) -> OccupantLeft:
    return OccupantLeft(f"{ROOM}/bot", "bot", codes=frozenset(codes), actor="Mod", reason=reason)


PONG = said("bot", "pong")
CRASHES = [
    (100.0 * number + pause, event)
    for number in (1, 2, 3)
    for pause, event in ((0.0, said("Carl", "!crash")), (0.3, left()), (5.0, came()))
]
ONLY_OWNERS = [*asked(3, PONG), *((50.0 + it, said("Alice", "!ping")) for it in (0, 100, 400))]
SPELT = [*HEALTHY, *((20.0 * it, said("Alice", "!Ping")) for it in (1, 2, 3))]
SPELT += [(70.0 + at, event) for at, event in HEALTHY]
VISITOR = (replace(occupant("bot"), role="visitor"), *OTHERS)
BROKEN: dict[str, Kind] = {
    "answers without a body": Kind("cause", "has no body", asked(3, said("bot", ""))),
    "answers with encryption": Kind("cause", "without its keys can read", asked(3, secret("bot"))),
    "once without a body": Kind("unknown", "has no body", asked(1, said("bot", ""))),
    "answers twice": Kind("cause", "twice in the same words", asked(4, PONG, PONG)),
    "ends at a command, regularly": Kind(
        "cause", 'just after a message, at last "!crash"', CRASHES
    ),
    "answers owners alone": Kind(
        "cause",
        'the affiliation ("owner", "Alice"\'s "none")',
        sorted(ONLY_OWNERS, key=lambda act: act[0]),
        (occupant("bot"), occupant("Carl", "owner"), occupant("Alice")),
    ),
    "one spells it otherwise": Kind("cause", "how the command is spelt", SPELT),
    "asked without a voice": Kind("cause", "no voice", asked(2, who="Alice"), VISITOR),
    "banned": Kind("cause", "banned", [*HEALTHY, (50.0, put_out(301, reason="spam"))], OTHERS),
    "the service went down": Kind("cause", "shuts down", [*HEALTHY, (50.0, put_out(332))], OTHERS),
    "members alone": Kind("cause", "for members only", [*HEALTHY, (50.0, put_out(322))], OTHERS),
    "runs twice, accounts hidden": Kind(
        "well",
        '"bot_" gave the same answer as "bot", 4 times',
        asked(4, PONG, said("bot_", "pong")),
        (occupant("bot"), occupant("bot_"), occupant("Carl")),
    ),
}

BOTS = (occupant("bot"), *OTHERS)
SECRETIVE: Acts = [
    (10.0, said("Carl", "bot: are you there?")),
    (17.0, secret("bot")),
    (30.0, said("Carl", "bot: and now?")),
    (44.0, secret("bot")),
]
GREETED: Acts = [
    (60.0 * number + pause, event)
    for number in range(4)
    for pause, event in (
        (0.0, came(f"Guest{number}")),
        (0.1, said("bot", "welcome")),
        (0.2, said("Doorman", "hello")),
    )
]
PHONES: Acts = [
    (90.0 * number + pause, event)
    for number in range(1, 4)
    for pause, event in ((0.0, left("away", nickname="Alice")), (9.0, came("Alice")))
]
CHATTY: Acts = [
    (5.0 * number + number % 3, said(("Carl", "Alice")[number % 2], "lol")) for number in range(40)
]
RELAYED: Acts = [(7.0 * it + it * it % 5, said("bot", f"<ann> line {it}")) for it in range(20)]
MARKED = said("bot", "", reacts_to="q", reactions=("\N{WHITE HEAVY CHECK MARK}",))
BY_TWO = [*asked(4, PONG), *((at + 50, event) for at, event in asked(4, PONG, who="Alice"))]
KEYS: Acts = [(200.0 + it, secret(("Carl", "Alice")[it % 2])) for it in range(4)]
WELL: dict[str, Acts] = {
    "a bot that answers": asked(3, PONG),
    "asked again and again": [(1.0 * at, event) for at, event in asked(9, PONG)],
    "asked by two": sorted(BY_TWO, key=lambda act: act[0]),
    "asked by two at once": asked(4, said("Alice", "!ping"), PONG, PONG),
    "answers of two lines": asked(4, said("bot", "one"), said("bot", "two")),
    "answers with a mark": asked(4, MARKED, PONG),
    "two that greet": GREETED,
    "phones that come and go": [*asked(1, PONG), *PHONES],
    "two chatty people": [*asked(1, PONG), *CHATTY],
    "a gateway": RELAYED,
    "a person with keys": SECRETIVE,
    "two people with keys": [
        *asked(1, PONG),
        *((200.0 + it, secret(("Carl", "Alice")[it % 2])) for it in range(4)),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
async def test_the_cause_is_named_first_or_the_bots_log_is_asked_for(name: str) -> None:
    kind = BROKEN[name]
    *_, last = await follow(kind)
    assert last["outcome"] == kind.outcome, last
    assert kind.words in f"{last['verdict']} {last.get('hint')}", last


@pytest.mark.parametrize("account", [None, "{}@example.org/r"])
@pytest.mark.parametrize("name", WELL)
async def test_in_healthy_rooms_nothing_is_found_wrong(name: str, account: str | None) -> None:
    def known(it: Occupant) -> Occupant:
        return replace(it, real_jid=account and account.format(it.nickname.lower()))

    kind = Kind("well", "", WELL[name], tuple(map(known, BOTS)))
    for nickname in ("bot", None):
        result = fitting(xmpp_diagnose, await xmpp_diagnose(room_of(kind).link, nickname))
        assert result["outcome"] != "cause", result
        assert result["outcome"] == "well" or nickname is None, result
        assert not [it for it in result["findings"] if it["ok"] is False], result


async def test_without_a_nickname_a_loop_of_three_is_named_once() -> None:
    names = ("bot", "Carl", "Alice")
    acts = [(100.0 + 0.3 * it, said(names[it % 3], f"word {it}")) for it in range(30)]
    result = fitting(
        xmpp_diagnose, await xmpp_diagnose(room_of(Kind("cause", "", acts, BOTS)).link)
    )
    assert (result["outcome"], len(result["findings"])) == ("cause", 1), result
    assert "more are found wrong" not in result["verdict"]


ASKED: dict[str, tuple[Acts, str, str]] = {
    "at once": ([(0.05, PONG)], "well", '"bot" after 50 ms'),
    "by a reaction": ([(0.05, MARKED)], "well", '"bot" after 50 ms'),
    "late": ([(20.0, PONG)], "unknown", '"bot" after 20,000 ms'),
    "without a body": ([(0.05, said("bot", ""))], "cause", "has no body"),
    "in private": ([(0.05, said("bot", "pong", type="chat"))], "cause", "in private"),
    "in private, and then it says something": (
        [(0.05, said("bot", "pong", type="chat")), (15.0, said("bot", "news"))],
        "cause",
        "in private",
    ),
    "in private, later": ([(9.0, said("bot", "pong", type="chat"))], "unknown", "ms (private)"),
    "twice": ([(0.05, PONG), (0.09, PONG)], "cause", "twice"),
    "not": ([], "unknown", 'Nobody answered "!ping".'),
}
"""How a bot, whose client does not say what it is, answers a command of the bridge."""


@pytest.mark.parametrize("name", ASKED)
async def test_without_a_nickname_only_a_prompt_answer_that_all_read_clears(name: str) -> None:
    acts, outcome, words = ASKED[name]
    room, began = room_of(Kind(outcome, words, there=BOTS)), time.time() - 30
    room.publish(MessageSent(room.occupant, "McpDebug", "!ping", "m1"), at=began)
    ours = MessageReceived(room.occupant, "McpDebug", "!ping", id="m1", own=True)
    room.publish(ours, at=began)
    for at, event in acts:
        room.publish(event, at=began + at)
    result = fitting(xmpp_diagnose, await xmpp_diagnose(room.link))
    assert result["outcome"] == outcome, result
    assert words in result["verdict"]
    step = result.get("nextStep") or {"arguments": {}}
    assert ("nickname" in step["arguments"]) is (outcome == "unknown" and bool(acts))


async def test_what_others_were_answered_is_quoted_if_the_bridge_asked_nothing() -> None:
    link = room_of(Kind("well", "", HEALTHY, BOTS)).link
    result = fitting(xmpp_diagnose, await xmpp_diagnose(link, "bot"))
    (answer,) = result["answers"]
    told = {"to": "Carl", "asked": "!ping", "body": "pong", "answerMs": 43.0}
    assert answer.items() >= told.items()
