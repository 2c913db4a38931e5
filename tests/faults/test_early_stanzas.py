"""Stanzas from whoever knows our full JID, while the session is only beginning."""

import asyncio
import re
from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Connected, MessageReceived, Phase
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scene import CALM
from tests.faults.scripted_server import HONEST, ROOM, ScriptedServer, Step, Wire

SM = "xmlns='urn:xmpp:sm:3'"
FEATURES = f"<bind xmlns='{scripted.BIND}'/><sm {SM}/>"
ENABLED = f"<enabled {SM} resume='true' id='one'/>"
EARLY = (
    "<message from='eve@evil.example' type='chat'><body>hello</body></message>"
    "<presence from='eve@evil.example/x'/>"
    "<iq type='get' id='early-ping' from='eve@evil.example/x'><ping xmlns='urn:xmpp:ping'/></iq>"
    f"<message from='{ROOM}/Wilma' type='groupchat'><body>early word</body></message>"
)


def beginning(*, before_bind: str = "", before: str = "", answer: str = ENABLED) -> Step:
    """A bind with stream management, with stanzas slipped in between."""

    async def bind(wire: Wire) -> None:
        await wire.open(FEATURES)
        request = await wire.element("iq", "resume")
        if scripted.local(request) == "resume":
            wire.send(f"{before}<failed {SM}/>")
            request = await wire.element("iq")
        resource = request.findtext(f"{{{scripted.BIND}}}bind/{{{scripted.BIND}}}resource") or ""
        wire.jid = f"bot@localhost/{resource}"
        wire.send(before_bind + scripted.bound(request.get("id", ""), wire.jid))
        await wire.element("enable")
        wire.send(before + answer)

    return bind


async def count(wire: Wire) -> int:
    """How many stanzas the client says that it has got; nothing else is answered."""
    wire.send(f"<r {SM}/>")
    while scripted.local(answer := await wire.element()) != "a":
        pass
    return int(answer.get("h", ""))


@pytest.mark.parametrize(
    "bind",
    [
        beginning(before_bind=EARLY),
        beginning(before=EARLY),
        beginning(before=EARLY, answer=f"<failed {SM}/>"),
    ],
    ids=["before the bind result", "before enabled", "before failed"],
)
async def test_stanzas_that_come_early_keep_nobody_out_and_are_dealt_with_afterwards(
    bind: Step,
) -> None:
    async with ScriptedServer(replace(HONEST, bind=bind)) as server, participant_at(server) as eyes:
        await eyes.joined()
        assert len(server.wires) == 1
        heard = server.heard.decode()
        assert 'id="early-ping" to="eve@evil.example/x"' in heard.replace("'", '"')
        kinds = [type(each.event) for each in eyes.records]
        assert kinds.index(MessageReceived) > kinds.index(Connected)
        assert [each.body for each in eyes.messages()] == ["early word"]


async def test_what_comes_before_a_session_is_resumed_is_dealt_with_and_not_counted() -> None:
    counted: asyncio.Queue[int] = asyncio.Queue()

    async def stand(wire: Wire) -> None:
        wire.send(scripted.said("Wilma", "before the cut"))
        await wire.sent()
        await cut.wait()
        wire.abort()

    async def resume(wire: Wire) -> None:
        await wire.open(FEATURES)
        counted.put_nowait(int((await wire.element("resume")).get("h", "")))
        wire.send(f"{EARLY}<resumed {SM} previd='one' h='1'/>" + scripted.said("Wilma", "after"))
        counted.put_nowait(await count(wire))
        await wire.gone()

    async def nothing(wire: Wire) -> None:
        del wire

    cut = asyncio.Event()
    first = replace(HONEST, bind=beginning(), stand=stand)
    second = replace(HONEST, bind=resume, join=nothing)
    async with ScriptedServer(first, second) as server, participant_at(server) as eyes:
        await eyes.hears("before the cut")
        cut.set()
        await eyes.hears("after")
        async with asyncio.timeout(5):
            assert -await counted.get() + await counted.get() == 1
        assert [each.body for each in eyes.messages()] == ["before the cut", "early word", "after"]


async def test_a_session_in_place_of_a_forgotten_one_is_asked_for_when_it_is_cut_soon() -> None:
    async def stand(wire: Wire) -> None:
        await wire.sent()
        wire.abort()

    async def resume(wire: Wire) -> None:
        await wire.open(FEATURES)
        asked.set_result((await wire.element("resume")).get("previd"))
        await wire.gone()

    asked = asyncio.get_running_loop().create_future()
    scripts = [
        replace(HONEST, bind=beginning(answer=ENABLED.replace("one", id_)), stand=stand)
        for id_ in ("one", "two")  # the server knows the first no longer
    ]
    last = replace(HONEST, bind=resume)
    async with ScriptedServer(*scripts, last) as server, participant_at(server):
        async with asyncio.timeout(30):
            assert await asked == "two"


async def test_each_fresh_bind_has_a_resource_of_its_own() -> None:
    async def stand(wire: Wire) -> None:
        await wire.sent()
        wire.abort()

    plain = replace(HONEST, bind=beginning(answer=f"<failed {SM}/>"), stand=stand)
    async with ScriptedServer(plain) as server, participant_at(server) as eyes:
        await server.connections(3)
        await eyes.phase(Phase.JOINED)
    resources = [wire.jid.partition("/")[2] for wire in server.wires[:2]]
    assert all(each.startswith("xmpp-debug-bridge.") for each in resources)
    assert len(set(resources)) == 2


async def test_whoever_leaves_first_tells_what_came() -> None:
    gone = asyncio.Event()

    async def ask(wire: Wire) -> None:
        before = await count(wire)
        wire.send(scripted.said("Wilma", "last words") + f"<r {SM}/>")
        try:
            await wire.gone()
        finally:
            told.append(before + 1)
            gone.set()

    told: list[int] = []
    script = replace(HONEST, bind=beginning(), stand=ask)
    async with ScriptedServer(script) as server:
        async with participant_at(server, timing=CALM) as eyes:
            await eyes.hears("last words")
            eyes.participant.leave()
            async with asyncio.timeout(5):
                await gone.wait()
        (wire,) = server.wires
        last = wire.heard[wire.heard.index(b"unavailable") :]
        assert re.findall(rb'<a [^>]*h="([0-9]+)"', last) == [str(each).encode() for each in told]
        assert last.index(b"<a ") < last.index(b"</stream:stream>")
