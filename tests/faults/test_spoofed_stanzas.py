"""Stanzas from those who may not send them, and texts that want to be more than text."""

from dataclasses import replace

import pytest

from bridge.xmpp.model.events import OccupantError, Phase, SendFailed, Source
from bridge.xmpp.model.faults import NotReflectedError
from bridge.xmpp.queries.keepalive import Timing
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    NICKNAME,
    ROOM,
    USERNAME,
    ScriptedServer,
    Step,
    Wire,
    local,
    present,
    said,
)

FAR = "other@conference.localhost"
"""A room we never joined."""
DELAY = "<delay xmlns='urn:xmpp:delay' stamp='1999-12-31T23:59:59Z' from='{}'/>"
STANZA_ID = "<stanza-id xmlns='urn:xmpp:sid:0' id='{}' by='{}'/>"


def announcing(*features: str, history: str = "") -> Step:
    """A join of a room with these features and this history."""

    async def join(wire: Wire) -> None:
        while local(element := await wire.element("iq", "presence")) == "iq":
            listed = "".join(f"<feature var='{one}'/>" for one in features)
            wire.send(
                f"<iq type='result' from='{ROOM}' id='{element.get('id')}'>"
                f"<query xmlns='http://jabber.org/protocol/disco#info'>{listed}</query></iq>"
            )
        wire.send(present("Wilma") + present(NICKNAME, 110) + history + scripted.subject(""))

    return join


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

    script = replace(HONEST, join=announcing(history=history), stand=lie)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.hears("the end")
        last = eyes.status().last_incoming
        assert last is not None
        assert last.message.sender == "Wilma"
        entries = {one.body: one for one in eyes.messages()}
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
        assert [one.source for one in eyes.messages()] == [Source.HISTORY, Source.LIVE, Source.LIVE]


@pytest.mark.parametrize(
    ("features", "believed"),
    [
        (["urn:xmpp:sid:0"], True),
        (["urn:xmpp:mam:2"], True),
        (["http://jabber.org/protocol/muc"], False),
    ],
    ids=["stanza ids", "an archive", "neither"],
)
async def test_ids_are_believed_from_a_room_that_says_that_it_gives_them(
    features: list[str], believed: bool
) -> None:
    eve = f"{ROOM}/Eve"
    history = said("Wilma", "told", content=STANZA_ID.format("s0", ROOM) + DELAY.format(ROOM))

    async def lie(wire: Wire) -> None:
        wire.send(
            said("Eve", "numbered by Eve", content=STANZA_ID.format("s1", eve))
            + said(
                "Eve",
                "numbered twice",
                content=STANZA_ID.format("s2", eve) + STANZA_ID.format("s3", ROOM),
            )
        )
        await scripted.stand(wire)

    script = replace(HONEST, join=announcing(*features, history=history), stand=lie)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.hears("numbered twice")
        ids = {one.body: one.stanza_id for one in eyes.messages()}
        assert ids == {
            "told": "s0" if believed else None,
            "numbered by Eve": None,
            "numbered twice": "s3" if believed else None,
        }


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


TO_SERVER = Timing(ping_interval=0.02, ping_deadline=0.2, check_interval=0.02)
TO_OURSELVES = Timing(
    ping_interval=60,
    ping_deadline=0.2,
    idle_before_ping=0.02,
    max_unconfirmed=0.4,
    check_interval=0.02,
)
FORGED_PONGS = {
    "a wrong id": (TO_SERVER, "<iq type='result' id='not-yours'/>"),
    "a wrong sender": (TO_SERVER, "<iq type='result' id='{id}' from='evil.example'/>"),
    "a stranger for the room": (TO_OURSELVES, "<iq type='result' id='{id}' from='evil.example'/>"),
    "the server for the room": (TO_OURSELVES, "<iq type='result' id='{id}'/>"),
    "another occupant for us": (TO_OURSELVES, f"<iq type='result' id='{{id}}' from='{ROOM}/Eve'/>"),
}


@pytest.mark.parametrize("forged", FORGED_PONGS)
async def test_a_ping_is_not_answered_by_a_forged_result(forged: str) -> None:
    timing, pong = FORGED_PONGS[forged]

    async def lie(wire: Wire) -> None:
        while True:
            element = await wire.element()
            if local(element) == "iq":
                wire.send(pong.format(id=element.get("id")))

    async with (
        ScriptedServer(replace(HONEST, stand=lie), HONEST) as server,
        participant_at(server, timing=timing) as eyes,
    ):
        fault, _, _ = await eyes.fault()
    server_is_asked = timing is TO_SERVER
    silence = "connection-timeout" if server_is_asked else "remote-server-timeout"
    assert fault.condition == silence


async def test_our_message_is_returned_by_the_room_alone() -> None:
    """Everybody in the room sees its id, and may be quicker than its reflection."""
    returned = (
        "<message type='error' id='{id}' from='{sender}'><error type='cancel'>"
        f"<not-acceptable xmlns='{scripted.STANZA_ERRORS}'/></error></message>"
    )

    async def lie(wire: Wire) -> None:
        while True:
            element = await wire.element()
            if local(element) == "message":
                id_ = element.get("id", "")
                for sender in (f"{ROOM}/Eve", "eve@evil.example", DOMAIN, FAR):
                    wire.send(returned.format(id=id_, sender=sender))
                wire.send(said(NICKNAME, "really", id_))

    async with ScriptedServer(replace(HONEST, stand=lie)) as server, participant_at(server) as eyes:
        reflection = await eyes.membership.say("really", 10)
        assert reflection.message.body == "really"
        happened = [one.event for one in eyes.records]
        assert not [one for one in happened if isinstance(one, SendFailed)]
        # What the occupant claims is told as theirs.
        assert [one for one in happened if isinstance(one, OccupantError)] == [
            OccupantError(f"{ROOM}/Eve", "Eve", "not-acceptable", None, reflection.message.id)
        ]


async def test_a_reflection_under_a_wrong_id_or_name_confirms_nothing() -> None:
    async def lie(wire: Wire) -> None:
        while True:
            element = await wire.element()
            if local(element) == "message":
                id_ = element.get("id", "")
                wire.send(said(NICKNAME, "hello", f"{id_}0") + said("Eve", "hello", id_))
                wire.send(said(NICKNAME, "hello", id_, room=FAR))

    async with ScriptedServer(replace(HONEST, stand=lie)) as server, participant_at(server) as eyes:
        await eyes.joined()
        with pytest.raises(NotReflectedError) as failure:
            await eyes.membership.say("hello", 0.5)
        assert failure.value.fault.condition == "remote-server-timeout"
        assert [(one.own, one.source) for one in eyes.messages()] == [(False, Source.LIVE)] * 2
        assert eyes.status().phase is Phase.JOINED
