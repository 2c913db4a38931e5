"""Stanzas from those who may not send them, and texts that want to be more than text."""

from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Phase, Source
from bridge.xmpp.model.faults import NotReflectedError
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    NICKNAME,
    ROOM,
    USERNAME,
    ScriptedServer,
    Wire,
    local,
    present,
    said,
)

FAR = "other@conference.localhost"
"""A room we never joined."""
DELAY = "<delay xmlns='urn:xmpp:delay' stamp='1999-12-31T23:59:59Z' from='{}'/>"


async def test_stamps_are_believed_from_the_room_alone_and_while_it_tells_its_history() -> None:
    eve = f"{ROOM}/Eve"
    talk = [
        said("Eve", "stamped by Eve", content=DELAY.format(eve)),
        said("Eve", "stamped by nobody", content=DELAY.format("").replace(" from=''", "")),
        said("Eve", "stamped by the server", content=DELAY.format(DOMAIN)),
        said("Eve", "stamped by Eve in the room's name", content=DELAY.format(ROOM)),
        said("", "said by the room itself"),
        said("Wilma", "the end"),
    ]
    history = "".join(
        said("Eve", body, content=DELAY.format(ROOM)) for body in ("told first", "told second")
    )
    private = said("Eve", "stamped in private", content=DELAY.format(ROOM))
    history += private.replace("type='groupchat'", "type='chat'")  # the room keeps none of these

    async def lie(wire: Wire) -> None:
        wire.send("".join(talk))
        await scripted.stand(wire)

    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(present("Wilma") + present(NICKNAME, 110) + history + scripted.subject(""))

    script = replace(HONEST, join=join, stand=lie)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.hears("the end")
        last = eyes.status().last_incoming
        assert last is not None
        assert last.message.sender == "Wilma"
        entries = {each.body: each for each in eyes.messages()}
    for body, entry in entries.items():
        told = (entry.source, entry.delayed_from)
        in_history = (Source.HISTORY, "1999-12-31T23:59:59.000Z")
        assert told == (in_history if body.startswith("told") else (Source.LIVE, None)), body
    assert len(entries) == 9
    assert entries["said by the room itself"].sender == ""


async def test_history_is_over_at_the_first_live_message_where_no_subject_ends_it() -> None:
    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(present(NICKNAME, 110) + said("Wilma", "told", content=DELAY.format(ROOM)))
        wire.send(said("Wilma", "live") + said("Eve", "stamped", content=DELAY.format(ROOM)))

    async with ScriptedServer(replace(HONEST, join=join)) as server, participant_at(server) as eyes:
        await eyes.hears("stamped")
        assert [each.source for each in eyes.messages()] == [
            Source.HISTORY,
            Source.LIVE,
            Source.LIVE,
        ]


async def test_an_answer_to_bind_counts_from_the_server_and_under_our_id_alone() -> None:
    async def lie(wire: Wire) -> None:
        await wire.open(f"<bind xmlns='{scripted.BIND}'/>")
        id_ = (await wire.element("iq")).get("id", "")
        wire.send(
            scripted.bound("1", "wrong@id.example/x")
            + scripted.bound(id_, "wrong@from.example/x", "evil.example")
            + f"<iq type='get' id='{id_}x'><ping xmlns='urn:xmpp:ping'/></iq>"
            + scripted.bound(id_, wire.jid)
        )

    async with ScriptedServer(replace(HONEST, bind=lie)) as server, participant_at(server) as eyes:
        await eyes.joined()
        assert eyes.status().jid == f"{USERNAME}@{DOMAIN}/scripted"
        assert len(server.wires) == 1


async def test_a_reflection_under_a_wrong_id_or_name_confirms_nothing() -> None:
    async def lie(wire: Wire) -> None:
        while True:
            element = await wire.element()
            if local(element) == "message":
                id_ = element.get("id", "")
                wire.send(said(NICKNAME, "hello?", f"{id_}0") + said("Eve", "hello", id_))
                wire.send(said(NICKNAME, "hello", id_, room=FAR))

    async with ScriptedServer(replace(HONEST, stand=lie)) as server, participant_at(server) as eyes:
        await eyes.joined()
        with pytest.raises(NotReflectedError) as failure:
            await eyes.membership.say("hello", 0.5)
        assert failure.value.fault.condition == "unproved"
        assert [(each.own, each.source) for each in eyes.messages()] == [(False, Source.LIVE)] * 2
        assert eyes.status().phase is Phase.JOINED
