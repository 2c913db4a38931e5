"""Nothing is found wrong in healthy rooms: a false alarm is worse than silence.

`python -m tests.xmpp.checks.test_healthy_rooms 10000` plays so many weeks.
"""

import sys
from dataclasses import replace

import pytest

from bridge.xmpp.checks.diagnosis import find, look_over
from bridge.xmpp.checks.evidence import Evidence, Past, Ping
from bridge.xmpp.checks.exchanges import regulars
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.model.room import Occupant
from tests.tools.played import ROOM, STATUS
from tests.xmpp.checks.healthy import KINDS, Week, week

SEEDS = 304
"""How many weeks a run of the tests plays: each kind of room as often."""
PONG = Ping(0.01, None, "It answers.", alone=False)


def alarms(seed: int) -> list[str]:
    """Return what is found wrong in the room of this seed, of each one and of all programs."""
    room = week(seed)
    journal = Journal("epoch")
    records = [journal.append(event, at, ROOM) for at, event in room.events]
    # At the end, or in the middle of something.
    return _alarms(room, records[: len(records) * (seed % 7 + 2) // 8])


def _alarms(room: Week, records: list[Record]) -> list[str]:
    wrong = list[str]()
    everybody = _evidence(room, records, "")
    even = regulars(everybody.acts)
    wrong += [f"{who} looks like a program" for who in room.people if who in even]
    for who in [*room.people, *room.programs]:
        known = _evidence(room, records, who)
        if who in room.programs:
            name, finding = look_over(known._replace(named=False))
            wrong += [] if name == "program" else [finding.detail]
        phone = room.kind in {"phones", "greeted"} and who in room.people
        allowed = {"stays"} if phone else set()  # it was asked for by name
        _, findings = find(known)
        wrong += [
            finding.detail
            for name, finding in findings.items()
            if finding.ok is False and name not in allowed
        ]
    return wrong


def _evidence(room: Week, records: list[Record], who: str) -> Evidence:
    there = [
        Occupant(
            f"{ROOM}/{nickname}",
            nickname,
            "participant",
            "none",
            None,
            real_jid=None if room.kind == "anonymous" else f"{nickname.lower()}@example/x",
        )
        for nickname in (*room.people, *room.programs)
    ]
    status = replace(STATUS, occupants=(*STATUS.occupants, *there), persistent=True)
    status = replace(status, moderated=room.kind == "moderated")
    past = Past(who, there=True)
    for record in reversed(records):
        past.add(record)
    occupant = next((it for it in there if it.nickname == who), None)
    now = records[-1].at + 0.5
    return Evidence(who, ROOM, status, occupant, past, now, ping=PONG, programs=room.says)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_wrong_in_a_healthy_room(kind: str) -> None:
    seeds = range(KINDS.index(kind), SEEDS, len(KINDS))
    assert {seed: found for seed in seeds if (found := alarms(seed))} == {}


def test_each_kind_of_room_has_programs_that_are_looked_at() -> None:
    for seed in range(len(KINDS)):
        room = week(seed)
        assert len(room.events) > 100
        assert {"Robot"} <= {getattr(event, "sender", "") for _, event in room.events}


if __name__ == "__main__":
    first, last = (0, *map(int, sys.argv[1:]))[-2:]
    rooms = {seed: found for seed in range(first, last) if (found := alarms(seed))}
    for seed, found in rooms.items():
        print(seed, KINDS[seed % len(KINDS)], *found)  # noqa: T201 - run by hand
    print(f"{last - first} weeks, {len(rooms)} with an alarm")  # noqa: T201 - run by hand
