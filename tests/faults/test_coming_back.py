"""What is heard, said and lost when a connection ends and another one takes its place."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model import backoff
from bridge.xmpp.model.events import MessageSent, Phase, SendFailed, Source, encode
from bridge.xmpp.model.faults import BouncedError, NotReflectedError
from bridge.xmpp.model.formatting import format_event
from bridge.xmpp.muc.joining import suffixed
from tests.faults.relay import Treatment, Way
from tests.faults.scene import (
    HASTY,
    NICKNAME,
    ON_PROSODY,
    SECONDS,
    Eyes,
    Scene,
    configure,
    scene,
    told,
)
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess


@pytest.fixture
async def open_stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    """A scene with a relay that sees stanzas."""
    async with scene(server_process, authority, way="open") as stage:
        yield stage


def _without_stream_management(stage: Scene) -> None:
    stage.relay.forge(Way.TO_CLIENT, b"urn:xmpp:sm:3", b"urn:example:3")


def _never_twice(eyes: Eyes) -> None:
    ids = [each.stanza_id for each in eyes.messages()]
    assert len(ids) == len(set(ids))


async def test_a_server_that_comes_back_finds_the_participant_in_the_room_again(
    stage: Scene,
) -> None:
    # Past the relay: it would take the connections that the dead server refuses.
    service = stage.settings.service
    assert service is not None
    stage.set(service=service._replace(port=stage.server.port("starttls")))
    async with stage.participant() as eyes:
        await eyes.joined()
        # Prosody shuts down in order, ejabberd is killed.
        end = stage.process.stop if stage.server.name == "prosody" else stage.process.kill
        await asyncio.to_thread(end)
        fault, changed, _ = await eyes.fault()
        assert changed.phase is Phase.WAITING
        assert fault.condition in {"connection-reset", "system-shutdown", "recipient-unavailable"}
        assert "by itself" in fault.hint
        with pytest.raises(NotInRoomError):
            await eyes.membership.say("from outside", 30)
        while fault.condition != "connection-refused":  # the room may drop us before the server
            fault, changed, _ = await eyes.fault()
        assert changed.phase is Phase.WAITING
        assert "XMPP_SERVICE" in fault.hint
        await asyncio.to_thread(stage.process.start)
        await eyes.joined()
        async with stage.witness() as wilma:
            await eyes.membership.say("after", 30)
            await wilma.heard("after")
    assert "from outside" not in eyes.sent()


async def test_a_session_that_was_cut_is_taken_up_again_and_nothing_is_missed(stage: Scene) -> None:
    stage.first_pause = SECONDS
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        await eyes.membership.say("before", 30)
        stage.relay.refuse()
        await eyes.fault()
        eyes.try_again()  # an attempt that meets no server does not forget the session
        await eyes.fault()
        for number in range(30):
            wilma.say(f"meanwhile {number}")
        await wilma.heard("meanwhile 29")
        await stage.relay.heal()
        eyes.try_again()
        await eyes.joined()
        await eyes.hears("meanwhile 29")
        assert eyes.resumed() == [False, True]
        bodies = [each.body for each in eyes.messages()]
        assert bodies == ["before", *(f"meanwhile {number}" for number in range(30))]
        _never_twice(eyes)
        with pytest.raises(TimeoutError):
            await wilma.left(NICKNAME, 0)


@pytest.mark.parametrize("known", [False, True], ids=["no sessions", "a session forgotten"])
async def test_what_was_missed_is_filled_in_once_in_order_and_with_its_time(
    known: bool, open_stage: Scene
) -> None:
    stage = open_stage

    def without() -> None:
        if known:  # the id of the session that it asks for is nobody's
            stage.relay.forge(Way.TO_SERVER, b'previd="', b'previd="x')
        else:
            _without_stream_management(stage)

    without()
    stage.first_pause = SECONDS
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        await eyes.membership.say("before", 30)
        stage.relay.refuse()
        await eyes.fault()
        for number in range(30):  # more than the room's own history holds
            wilma.say(f"meanwhile {number}")
        await wilma.heard("meanwhile 29")
        await stage.relay.heal()
        without()
        eyes.try_again()
        await eyes.joined()
        await eyes.membership.say("after", 30)
        await eyes.until(lambda _: len(eyes.messages()) >= 32 or eyes.gaps())
        assert (b"previd=" in stage.relay.passed[Way.TO_SERVER]) is known
        assert eyes.resumed() == [False, False]
        assert not eyes.gaps()
        missed = [each for each in eyes.messages() if each.body.startswith("meanwhile")]
        assert [each.body for each in missed] == [f"meanwhile {number}" for number in range(30)]
        assert {each.source for each in missed} == {Source.ARCHIVE}
        assert all(each.delayed_from for each in missed)
        _never_twice(eyes)


@pytest.mark.parametrize("since_before", [False, True])
async def test_what_a_room_whose_archive_is_off_does_not_tell_is_a_gap(
    since_before: bool, open_stage: Scene
) -> None:
    stage = open_stage

    async def turn_off() -> None:
        form = await wilma.muc.get_room_config(stage.room)
        prosody = stage.server.name == "prosody"
        form.set_values({"muc#roomconfig_enablearchiving" if prosody else "mam": False})
        await wilma.muc.set_room_config(stage.room, form)

    _without_stream_management(stage)
    async with stage.witness() as wilma, AsyncExitStack() as coming:
        if since_before:
            await turn_off()
        eyes = await coming.enter_async_context(stage.participant())
        await eyes.joined()
        await eyes.membership.say("before", 30)
        stage.relay.refuse()
        await eyes.fault()
        if not since_before:
            await turn_off()
        for number in range(30):  # more than the room's own history holds
            wilma.say(f"meanwhile {number}")
        await wilma.heard("meanwhile 29")
        await stage.relay.heal()
        _without_stream_management(stage)
        await eyes.joined()
        # Both servers answer with what they archived before, or with their short history.
        await eyes.until(lambda _: eyes.gaps())


@ON_PROSODY
async def test_a_slow_network_is_no_fault(stage: Scene) -> None:
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        stage.relay.delay(0.2)
        assert (await eyes.membership.say("slowly", 30)).round_trip_seconds >= 0.4
        stage.relay.treat(Treatment.STALL, Way.TO_CLIENT)
        for number in range(3):
            wilma.say(str(number))
        await wilma.heard("2")
        await stage.relay.heal()
        await eyes.hears("2")
        assert [each.body for each in eyes.messages()] == ["slowly", "0", "1", "2"]
        assert eyes.status().last_error is None


@pytest.mark.parametrize(
    ("way", "heard"), [(Way.TO_SERVER, 0), (Way.TO_CLIENT, 1)], ids=["unheard", "heard"]
)
async def test_a_send_in_flight_when_the_connection_is_cut_is_not_known_and_not_sent_twice(
    way: Way, heard: int, stage: Scene
) -> None:
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        stage.relay.treat(Treatment.SWALLOW, way)
        sending = asyncio.create_task(eyes.membership.say("in flight", 10))
        await eyes.see(lambda event: isinstance(event, MessageSent))
        if heard:
            await wilma.heard("in flight")
        stage.relay.reset()
        with pytest.raises(NotReflectedError) as unknown:
            await sending
        assert unknown.value.fault.condition == "connection-reset"
        await stage.relay.heal()
        await eyes.joined()
        await eyes.membership.say("after", 30)
        await wilma.heard("after")
        with pytest.raises(TimeoutError):
            await wilma.heard("in flight", 0)
        assert eyes.sent() == ["in flight", "after"]
        assert len(told(eyes.messages(), "in flight")) <= heard


@ON_PROSODY
async def test_what_the_room_returns_fails_the_send_that_it_belongs_to(stage: Scene) -> None:
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        await configure(wilma, moderatedroom="1")
        await wilma.muc.set_role(stage.room, NICKNAME, "visitor")
        results = await asyncio.gather(
            *(eyes.membership.say(body, 30) for body in ("one", "two")), return_exceptions=True
        )
        returned = [each.fault for each in results if isinstance(each, BouncedError)]
        assert [each.condition for each in returned] == ["forbidden", "forbidden"]
        failed = [each.event for each in eyes.records if isinstance(each.event, SendFailed)]
        sent = [each.event for each in eyes.records if isinstance(each.event, MessageSent)]
        assert [each.id for each in failed] == [each.id for each in sent]
        await wilma.muc.set_role(stage.room, NICKNAME, "participant")
        await eyes.membership.say("three", 30)
        await wilma.heard("three")
        assert eyes.status().connected


@ON_PROSODY
async def test_a_room_that_lifts_its_bar_is_entered_at_the_next_look(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LATER_SECONDS", 0.5)
    async with stage.witness() as wilma:
        await configure(wilma, membersonly="1")
        async with stage.participant() as eyes:
            await eyes.fault()
            assert eyes.status().phase is Phase.FAILED
            await configure(wilma, membersonly="0")
            await eyes.joined()


@ON_PROSODY
async def test_no_number_of_taken_nicknames_keeps_it_out(stage: Scene) -> None:
    nickname = "N" * 1_023  # as long as can be
    guessed = [nickname, *(suffixed(nickname, f"-{number}") for number in range(2, 8))]
    async with AsyncExitStack() as open_:
        for taken in guessed:
            await open_.enter_async_context(stage.witness(taken))
        wanted = stage.settings._replace(nickname=nickname)
        eyes = await open_.enter_async_context(stage.participant(wanted))
        await eyes.joined()
        assert (ours := eyes.status().nickname) not in guessed
        assert re.fullmatch("-[0-9a-f]{8}", ours.removeprefix(nickname[:1_014]))
        told = [format_event(encode(each.event)) for each in eyes.records]
        assert f"in the room as {eyes.membership.occupant}" in told


@pytest.mark.parametrize("server_process", ["prosody", "ejabberd"], indirect=True)
async def test_two_bridges_under_one_account_hear_each_other_and_neither_flaps(
    stage: Scene,
) -> None:
    stage.timing = HASTY
    async with stage.witness() as wilma, stage.participant() as first, stage.participant() as other:
        pair = (first, other)
        for eyes in pair:
            await eyes.joined()
        for number, (speaker, listener) in enumerate((pair, pair[::-1])):
            await speaker.participant.memberships[0].say(f"word {number}", 30)
            heard = await listener.hears(f"word {number}")
            assert not heard.own
            await wilma.heard(f"word {number}")
        for eyes in pair:
            status = await eyes.until(
                lambda status: (
                    status.self_ping_ms is not None
                    and any("Another session" in it for it in status.warnings)
                )
            )
            assert (status.phase, status.last_error) == (Phase.JOINED, None)
            own = [first for first in eyes.messages() if first.own]
            assert len(own) == 1
            assert len(told(eyes.messages(), "word 0", "word 1")) == 2
            # What the other one says looks as if this one had said it.
            shared = [it for it in status.warnings if "Another session" in it]
            assert len(shared) == 1
            assert all(it in shared[0] for it in (f'"{NICKNAME}"', "MCP_BOT_NICKNAME"))
