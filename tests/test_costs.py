"""What things cost, in counts that no other load on the machine changes.

`tests/benchmarks` has the timings. Each bound is a tenth to a quarter above what was counted on
CPython 3.11, so that it holds on newer ones and still tells of a step up.
"""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.muc import reading
from tests.xmpp.elements import append

ROOT = Path(__file__).parent.parent
ROOM = "room@conference.localhost"
OWN = f"{ROOM}/McpDebug"
MANY = 500
"""Of which twice as many cost twice as much: what happens once falls out of the difference."""
JOURNAL_BYTES = 125
"""Memory that a journal keeps for one message beside the event itself; counted: 105."""
MESSAGE_BYTES = 2_900
"""Memory that a journal and a trace keep for one message of 400 bytes, its event and element;
counted: 2,596."""
GROWTH_BYTES = 10
"""What may be left per message where a full history takes in one more and drops the oldest."""


def _message(number: int) -> Element:
    return fromstring(  # noqa: S314 - ours
        f"<message xmlns='jabber:client' type='groupchat' from='{ROOM}/Wilma' id='m{number}'>"
        f"<body>number {number}: what somebody says in a room is about as long as this</body>"
        f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='archived-{number}'/>"
        "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='dd72603deec90a38ba552f7c68cbcc61'/>"
        "</message>"
    )


def _kept(work: Callable[[], object]) -> int:
    """How many bytes `work` left allocated."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        del result
    finally:
        tracemalloc.stop()
    return after - before


def test_the_journal_keeps_little_beside_the_event() -> None:
    journal = Journal("epoch", 4 * MANY)
    event = MessageReceived(f"{ROOM}/Wilma", "Wilma", "hello", id="m", stanza_id="s")

    def keep() -> None:
        for _ in range(MANY):
            journal.append(event, 0.0)

    keep()
    assert _kept(keep) / MANY <= JOURNAL_BYTES


def test_a_message_in_the_room_keeps_little_memory() -> None:
    journal = Journal("epoch", 4 * MANY)
    trace = Trace(journal.numbering, 4 * MANY)
    kept = iter(range(2 * MANY))

    def keep() -> None:
        for number in islice(kept, MANY):
            element = _message(number)
            append(trace, "in", "1", element, 0.0)
            for event in reading.read(element, room=ROOM, own=OWN):
                journal.append(event, 0.0)

    keep()
    assert _kept(keep) / MANY <= MESSAGE_BYTES


def test_a_full_history_grows_no_further() -> None:
    journal = Journal("epoch", MANY)
    trace = Trace(journal.numbering, MANY)

    def keep() -> None:
        for number in range(2 * MANY):
            element = _message(number)
            append(trace, "in", "1", element, 0.0)
            for event in reading.read(element, room=ROOM, own=OWN):
                journal.append(event, 0.0)

    keep()
    tracemalloc.start()
    try:
        keep()
        keep()  # all that is kept from here on was seen coming
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        keep()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before <= MANY * GROWTH_BYTES
