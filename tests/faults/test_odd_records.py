"""Whatever the stanzas of a stranger hold, what is made of them is recorded and read again."""

import asyncio
import random
import time
from math import inf
from pathlib import Path
from xml.etree.ElementTree import ParseError, fromstring
from xml.sax.saxutils import escape, quoteattr

from bridge.recording.recorded import Reader
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.muc import reading
from tests.recording.test_recording import ME, ROOM, Stage

STANZAS = 1_500
MUC = "http://jabber.org/protocol/muc#user"
ODD = [
    *("", "x", "é", "\U0001f600", "\u202e", "\ufffd", "\x85", "\n\r\t", "'", '"', "\\", "\\u0000"),
    *("9" * 30, "9" * 5_000, "-1", "1e999", "NaN", "null", '{"a":1}', "$.x", "%s", "a" * 3_000),
    *("9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99"),
]
"""Values for any attribute and any text."""

CHILDREN = [
    "<subject>{t}</subject>",
    "<body>{t}</body>",
    "<show>{t}</show><status>{t}</status>",
    f"<stanza-id xmlns='urn:xmpp:sid:0' id={{a}} by='{ROOM}'/>",
    f"<delay xmlns='urn:xmpp:delay' from='{ROOM}' stamp={{a}}/>",
    f"<x xmlns='{MUC}'><status code={{a}}/><item affiliation={{a}} role={{a}} jid={{a}}/></x>",
    f"<x xmlns='{MUC}'><item nick={{a}}><reason>{{t}}</reason><actor nick={{a}}/></item></x>",
    f"<x xmlns='{MUC}'><destroy jid={{a}}><reason>{{t}}</reason></destroy></x>",
    "<reactions xmlns='urn:xmpp:reactions:0' id={a}><reaction>{t}</reaction></reactions>",
    "<replace xmlns='urn:xmpp:message-correct:0' id={a}/>",
    "<retract xmlns='urn:xmpp:message-retract:1' id={a}/>",
    "<encryption xmlns='urn:xmpp:eme:0' namespace={a} name={a}/>",
    "<error type={a}><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>{t}</text></error>",
]


async def test_no_value_in_a_stanza_stops_recording_or_cannot_be_read(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "rooms.db")
    stage.enters()
    seed = time.time_ns() % 10**6
    chance = random.Random(seed)  # noqa: S311 - no secret
    made = 0
    for _ in range(STANZAS):
        odd = chance.choice(ODD)
        children = "".join(chance.sample(CHILDREN, chance.randrange(5)))
        content = children.format(a=quoteattr(odd), t=escape(odd))
        name = chance.choice(("message", "presence"))
        kind = chance.choice(("groupchat", "chat", "error", "unavailable", ""))
        sender = quoteattr(chance.choice((ROOM, f"{ROOM}/Wilma", f"{ROOM}/{odd}")))
        start = f"<{name} xmlns='jabber:client' from={sender} id={quoteattr(odd)} type='{kind}'>"
        try:
            stanza = fromstring(f"{start}{content}</{name}>")  # noqa: S314 - our own
        except ParseError:  # no stanza at all
            continue
        for event in reading.read(stanza, room=ROOM, own=ME.from_):
            stage.happens(event)
            made += 1
    recorder = stage.recording.recorder
    for _ in range(20):
        if await recorder.flush() is None:
            break
        await asyncio.sleep(0)  # it was busy: the next one waits in turn
    assert recorder.warnings == [], seed
    recorder.close()
    walk = await Reader(stage.place, "bot@localhost").walk([ROOM], EventFilter(), seconds=inf)
    told = [walk.record(row) async for row in walk]
    assert walk.unreadable == 0, seed
    assert made > STANZAS / 4, seed
    # Of events with one stanza id the first is kept: rooms give each its own.
    assert len(told) > made / 2, seed
