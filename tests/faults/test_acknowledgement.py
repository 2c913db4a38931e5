"""A server that manages the stream (XEP-0198), and asks after each stanza whether it has come."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter

import pytest

from bridge.xmpp.link.session import MAX_UNANSWERED
from bridge.xmpp.model.events import Phase
from bridge.xmpp.muc.participant import Participant
from tests.faults.reaching import settings_for
from tests.faults.scene import CALM, Eyes
from tests.faults.scripted_server import (
    BIND,
    HONEST,
    Script,
    ScriptedServer,
    Step,
    Wire,
    bound,
    cut_off_after,
    local,
    said,
    then,
)

SM = "urn:xmpp:sm:3"
ASKING = f"<r xmlns='{SM}'/>"
BURST = 5
JOINING = 4
"""Stanzas that come with joining: what the room can do, and the three that it greets with."""
PATIENCE_SECONDS = 5.0
"""Far less than any server has."""


async def _managed(wire: Wire) -> None:
    await wire.open(f"<bind xmlns='{BIND}'/><sm xmlns='{SM}'/>")
    request = await wire.element("iq")
    wire.send(bound(request.get("id", ""), wire.jid))
    await wire.element("enable")
    wire.send(f"<enabled xmlns='{SM}' id='session' resume='true'/>")


def _script(*stand: Step) -> Script:
    return replace(HONEST, bind=_managed, stand=then(*stand))


async def _settle(wire: Wire) -> None:
    """Let the question after the archive pass, and all that was sent so far be acknowledged."""
    question = await wire.element("iq")
    sender = question.get("to")
    wire.send(f"<iq type='result' id='{question.get('id')}' from='{sender}'/>{ASKING}")
    answer = await wire.element("a")
    assert answer.get("h") == str(JOINING + 1)


@asynccontextmanager
async def _visit(server: ScriptedServer) -> AsyncIterator[tuple[Participant, Eyes]]:
    participant = Participant(
        settings_for(server),
        timing=CALM,
    )
    eyes = Eyes(participant)
    running = asyncio.create_task(participant.run())
    try:
        yield participant, eyes
    finally:
        participant.leave()
        running.cancel()
        await asyncio.wait((running,))


async def test_a_burst_of_questions_gets_one_answer_in_good_time() -> None:
    answers: asyncio.Future[tuple[list[str | None], float]]
    answers = asyncio.get_running_loop().create_future()

    async def ask(wire: Wire) -> None:
        asked = perf_counter()
        for number in range(BURST):
            wire.send(said("Wilma", f"number {number}", f"m{number}") + ASKING)
        counts = [(await wire.element("a")).get("h")]
        seconds = perf_counter() - asked
        # An answer to the ping comes after whatever else was to come.
        wire.send("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
        while local(element := await wire.element()) != "iq":
            counts.append(element.get("h"))
        answers.set_result((counts, seconds))
        await wire.gone()

    async with ScriptedServer(_script(_settle, ask)) as server, _visit(server) as (_, eyes):
        await eyes.hears(f"number {BURST - 1}")
        counts, seconds = await answers
    assert counts == [str(JOINING + 1 + BURST)]
    assert seconds < PATIENCE_SECONDS


async def test_a_flood_is_acknowledged_before_the_server_keeps_too_much_of_it() -> None:
    counted: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    async def flood(wire: Wire) -> None:
        wire.send(ASKING)
        wire.send("".join(said("Wilma", "flood", f"m{n}") for n in range(MAX_UNANSWERED)))
        wire.send(said("Wilma", "the end", "end") + ASKING)
        first = await wire.element("a")
        second = await wire.element("a")
        counted.set_result([int(one.get("h", "")) for one in (first, second)])
        await wire.gone()

    async with ScriptedServer(_script(_settle, flood)) as server, _visit(server) as (_, eyes):
        await eyes.hears("the end")
        before = JOINING + 1
        assert await counted == [before + MAX_UNANSWERED, before + MAX_UNANSWERED + 1]


async def test_whoever_leaves_first_tells_what_came() -> None:
    gone = asyncio.Event()

    async def ask(wire: Wire) -> None:
        wire.send(said("Wilma", "last words", "m") + ASKING)
        try:
            await wire.gone()
        finally:
            gone.set()

    async with ScriptedServer(_script(_settle, ask)) as server:
        async with _visit(server) as (participant, eyes):
            await eyes.hears("last words")
            participant.leave()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await gone.wait()
        (wire,) = server.wires
        last = wire.heard[wire.heard.index(b"unavailable") :]
        assert re.findall(rb'<a [^>]*h="(\d+)"', last) == [str(JOINING + 2).encode()]
        assert last.index(b"<a ") < last.index(b"</stream:stream>")


async def test_a_stream_that_ends_with_an_answer_owed_is_no_mistake_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    last = cut_off_after(said("Wilma", "last words", "m") + ASKING)
    async with (
        ScriptedServer(_script(_settle, last), HONEST) as server,
        _visit(server) as (_, eyes),
    ):
        await eyes.hears("last words")
        fault, changed, _ = await eyes.fault()
        assert (fault.condition, changed.phase) == ("connection-reset", Phase.WAITING)
        await eyes.joined()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
