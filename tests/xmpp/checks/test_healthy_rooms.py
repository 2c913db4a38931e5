"""Nothing is found wrong in healthy rooms: a false alarm is worse than silence.

`python -m tests.xmpp.checks.test_healthy_rooms 10000` plays so many weeks, as .ci/long does.
"""

import sys
from dataclasses import replace

import pytest

from bridge.xmpp.checks.diagnosis import find, look_over
from bridge.xmpp.checks.evidence import Evidence
from bridge.xmpp.checks.exchanges import regulars
from tests.tools.played import ROOM, STATUS
from tests.xmpp.checks.healthy import KINDS, Week, week
from tests.xmpp.checks.watching import BOT, Act, evidence

SEEDS = 8 * len(KINDS)
"""How many weeks a run of the tests plays: each kind of room as often."""


def alarms(seed: int) -> list[str]:
    room = week(seed)
    acts = room.events[: len(room.events) * (seed % 7 + 2) // 8]  # at the end, or in the middle
    even = regulars(evidence(acts).acts)
    wrong = [f"{who} looks like a program" for who in room.people if who in even]
    for who in [*room.people, *room.programs, *room.visitors]:
        known = _evidence(room, acts, who)
        if who in room.programs:
            outcome, _, finding = look_over(known._replace(named=False))
            wrong += [finding.detail] if outcome == "cause" or finding.ok is False else []
        phone = room.kind in {"phones", "greeted"} and who in room.people
        allowed = {"stays"} if phone else set()  # it was asked for by name
        raised = find(known)
        wrong += [
            finding.detail
            for name, finding in raised.findings.items()
            if finding.ok is False and name not in allowed
        ]
        wrong += [raised.verdict] if raised.outcome == "cause" and not wrong and not phone else []
    return wrong


def _evidence(room: Week, acts: list[Act], who: str) -> Evidence:
    there = {
        nickname: replace(
            BOT,
            jid=f"{ROOM}/{nickname}",
            nickname=nickname,
            real_jid=f"{nickname.lower()}@example/x" if room.shown else None,
            role="visitor" if nickname in room.visitors else "participant",
        )
        for nickname in (*room.people, *room.programs, *room.visitors)
    }
    status = replace(STATUS, occupants=(*STATUS.occupants, *there.values()), persistent=True)
    status = replace(status, moderated=room.kind == "moderated")
    now = acts[-1][0] + 0.5
    known = evidence(acts, occupant=there[who], status=status, now=now, programs=room.says)
    return known._replace(bridges=frozenset({"Agent"} & {*room.programs}))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_wrong_in_a_healthy_room(kind: str) -> None:
    seeds = range(KINDS.index(kind), SEEDS, len(KINDS))
    assert {seed: raised for seed in seeds if (raised := alarms(seed))} == {}


if __name__ == "__main__":
    first, last = (0, *map(int, sys.argv[1:]))[-2:]
    rooms = {seed: raised for seed in range(first, last) if (raised := alarms(seed))}
    for seed, raised in rooms.items():
        print(seed, KINDS[seed % len(KINDS)], *raised)  # noqa: T201 - run by hand
    print(f"{last - first} weeks, {len(rooms)} with an alarm")  # noqa: T201 - run by hand
    sys.exit(bool(rooms))
