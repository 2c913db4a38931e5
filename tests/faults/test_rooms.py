"""What becomes of one room is the affair of that room: the others and the connection stay."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from bridge.settings.values import MAX_ROOMS, Secret
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model import backoff
from bridge.xmpp.model.events import Connected, ConnectionChanged, Event, Phase
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.room import MAKE_PERSISTENT
from bridge.xmpp.model.room import TEMPORARY as GOES
from bridge.xmpp.queries.keepalive import Timing
from tests.faults import deeds
from tests.faults.relay import Way
from tests.faults.scene import (
    CALM,
    HASTY,
    NICKNAME,
    ON_PROSODY,
    Eyes,
    Scene,
    configure,
    scene,
    told,
)
from tests.servers.certificates import Authority
from tests.servers.ejabberd import running_ejabberd
from tests.servers.process import ServerProcess
from tests.servers.prosody import running_prosody
from tests.servers.witness import Witness

TEMPORARY = {f"{GOES}. {MAKE_PERSISTENT}"}
"""What a status warns of in each of these rooms, which are made for one test."""
UNLUCKY = 1
"""The room, of three, that meets its fate."""


KICKED_SECONDS = 1.0
"""The pause after a kick here; users are promised a minute, which tests/xmpp/model/test_backoff.py
holds."""

WAITING, FAILED = Phase.WAITING, Phase.FAILED


class Guest:
    """Owns a room, and sees our comings and goings in it."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.joins = self.leaves = 0
        self._inside = False
        witness.client.register_handler(Callback("us", StanzaPath("presence"), self._see))

    def _see(self, presence: StanzaBase) -> None:
        if presence["from"] != f"{self.witness.room}/{NICKNAME}":
            return
        inside = presence.xml.get("type") is None
        self.joins += inside and not self._inside
        self.leaves += not inside
        self._inside = inside


@dataclass
class Play:
    """A scene with its actors on the stage."""

    scene: Scene
    guests: list[Guest]
    """Each owns one of the rooms."""

    eyes: Eyes
    unlucky: int = UNLUCKY

    @property
    def wilma(self) -> Witness:
        """Who owns the unlucky room."""
        return self.guests[self.unlucky].witness

    @property
    def us(self) -> Eyes:
        """What we see of the unlucky room."""
        return self.eyes.rooms[self.unlucky]

    @property
    def others(self) -> list[tuple[Eyes, Guest]]:
        """What we see of the other rooms, and who owns them."""
        pairs = list(zip(self.eyes.rooms, self.guests, strict=True))
        return [*pairs[: self.unlucky], *pairs[self.unlucky + 1 :]]


Deed = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True)
class Fate:
    """What becomes of one room, and what a user sees of it."""

    phase: Phase
    condition: str | frozenset[str]
    hint: str
    """What the hint must name."""

    message: str = ""
    """What the sentence must name."""

    do: Deed | None = None
    """Done while we are in the room; without it, we do not get in to begin with."""

    before: deeds.Before | None = None

    mend: Deed | None = None
    """What ends it, after which a user tries again."""

    back: bool = True
    """Whether we come back, by ourselves or after `mend`."""

    at_once: bool = False
    """Whether we are back before a user could notice."""

    pause: float | None = None
    """Seconds until the next attempt, where that is promised."""

    timing: Timing = CALM
    unlucky: int = UNLUCKY


async def _lift_the_ban(play: Play) -> None:
    bot = play.scene.server.bot.jid
    await play.wilma.muc.set_affiliation(play.wilma.room, "member", jid=bot)


async def _open(play: Play) -> None:
    await configure(play.wilma, membersonly="0")


async def _unlock(play: Play) -> None:
    await configure(play.wilma, passwordprotectedroom="0", roomsecret="")


async def _silence(play: Play) -> None:
    """Let nothing that comes from the room be known as that."""
    name = play.wilma.room.partition("@")[0].encode()
    play.scene.relay.forge(Way.TO_CLIENT, name, name[::-1])


async def _forget(play: Play) -> None:
    """Let us be put out of the room without our hearing of it."""
    relay, passed = play.scene.relay, asyncio.Event()
    await _silence(play)
    relay.once(Way.TO_CLIENT, rb"unavailable[\s\S]*?</presence>", passed.set)
    await play.wilma.kick(NICKNAME)
    await passed.wait()
    await relay.heal()


async def _elsewhere(stage: Scene, wilma: Witness) -> None:
    del wilma
    rooms = list(stage.settings.rooms)
    rooms[UNLUCKY] = "room@nowhere.invalid"
    stage.set(rooms=tuple(rooms))


FATES = {
    "kicked": Fate(
        WAITING, "not-allowed", "minute", "out with you", do=deeds.kick, pause=KICKED_SECONDS
    ),
    "kicked from the default room": Fate(
        WAITING, "not-allowed", "minute", do=deeds.kick, unlucky=0
    ),
    "banned": Fate(FAILED, "forbidden", "ban", "never again", do=deeds.ban, mend=_lift_the_ban),
    "banned before": Fate(
        FAILED, "forbidden", "ban", "banned", before=deeds.ban_before, mend=_lift_the_ban
    ),
    "members only": Fate(
        FAILED, "registration-required", "member", before=deeds.close_before, mend=_open
    ),
    "members only from now on": Fate(
        FAILED, "registration-required", "member", do=deeds.close, mend=_open
    ),
    "a password that we do not have": Fate(
        FAILED, "not-authorized", "first in MUC_ROOM", before=deeds.lock_before, mend=_unlock
    ),
    "destroyed": Fate(FAILED, "gone", "MUC_ROOM", "too old", do=deeds.destroy, back=False),
    "dropped for technical reasons": Fate(
        WAITING, "recipient-unavailable", "by itself", do=deeds.drop, at_once=True, pause=0.0
    ),
    "forgotten": Fate(
        WAITING, "not-acceptable", "by itself", do=_forget, at_once=True, pause=0.0, timing=HASTY
    ),
    "fallen silent": Fate(
        WAITING, "remote-server-timeout", "may be down", do=_silence, mend=deeds.heal, timing=HASTY
    ),
    "on a service that does not exist": Fate(
        FAILED,
        frozenset({"remote-server-not-found", "service-unavailable", "not-allowed", "forbidden"}),
        "MUC_ROOM",
        before=_elsewhere,
        back=False,
    ),
}


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    """A scene in three rooms, with a relay that sees stanzas."""
    async with scene(server_process, authority, way="open", rooms=3) as stage:
        yield stage


@pytest.fixture
async def guests(stage: Scene) -> AsyncIterator[list[Guest]]:
    """Who owns the rooms."""
    async with AsyncExitStack() as open_:
        yield [
            Guest(await open_.enter_async_context(stage.witness(room=room)))
            for room in stage.settings.rooms
        ]


@pytest.mark.parametrize("fate", FATES.values(), ids=FATES)
async def test_the_fate_of_one_room_is_not_that_of_the_others(
    fate: Fate, stage: Scene, guests: list[Guest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "MINUTE_SECONDS", KICKED_SECONDS)
    stage.timing = fate.timing
    if fate.before is not None:
        await fate.before(stage, guests[fate.unlucky].witness)
    async with stage.participant() as eyes:
        play = Play(stage, guests, eyes, fate.unlucky)
        for us, _ in play.others:
            await us.joined()
        if fate.do is not None:
            await play.us.joined()
            await play.us.membership.say("before", 5)
            await fate.do(play)
        fault, changed, record = await play.us.fault()
        conditions = {fate.condition} if isinstance(fate.condition, str) else fate.condition
        assert fault.condition in conditions
        assert fate.hint in fault.hint
        assert fate.message in fault.message
        if fate.pause is not None:
            assert changed.next_attempt_in_ms == fate.pause * 1_000
        assert (changed.phase, record.room) == (fate.phase, play.us.room)
        if not fate.at_once:
            status = play.us.status()
            assert status.phase is fate.phase
            assert status.last_error is not None
            assert status.last_error.fault == fault
            with pytest.raises(NotInRoomError):
                await play.us.membership.say("from outside", 5)
        await _expect_the_others_unharmed(play)
        if fate.back:
            await _expect_it_back(fate, play)
            await _expect_the_others_unharmed(play)
        assert stage.relay.accepted == 1
        assert stage.relay.passed[Way.TO_SERVER].count(b"<auth") == 1
    assert "from outside" not in eyes.sent()


async def _expect_the_others_unharmed(play: Play) -> None:
    for us, guest in play.others:
        status = us.status()
        assert (status.phase, status.last_error) == (Phase.JOINED, None)
        await us.membership.say("still here", 5)
        await guest.witness.heard("still here")
        assert (guest.joins, guest.leaves) == (1, 0)


async def _expect_it_back(fate: Fate, play: Play) -> None:
    if fate.do is not None:
        play.wilma.say("meanwhile")
        await play.wilma.heard("meanwhile")
    if fate.mend is not None:
        await fate.mend(play)
        play.eyes.participant.begin_anew(play.scene.settings)
    await play.us.joined()
    await play.us.membership.say("after", 5)
    await play.wilma.heard("after")
    if fate.do is not None:
        await play.us.hears("meanwhile")
        assert len(told(play.us.messages(), "meanwhile")) == 1
    assert play.us.status().nickname == NICKNAME


@ON_PROSODY
async def test_a_nickname_that_is_taken_in_one_room_is_ours_in_the_others(
    stage: Scene, guests: list[Guest]
) -> None:
    async with (
        stage.witness(NICKNAME, room=stage.settings.rooms[UNLUCKY]) as twin,
        stage.participant() as eyes,
    ):
        play = Play(stage, guests, eyes)
        for us in eyes.rooms:
            await us.joined()
        assert play.us.status().nickname == f"{NICKNAME}-2"
        await play.us.membership.say("hello", 5)
        assert (await twin.heard("hello")).nick == f"{NICKNAME}-2"
        warning, *_ = set(play.us.status().warnings) - TEMPORARY
        assert all(it in warning for it in (f'"{NICKNAME}"', f'"{NICKNAME}-2"', "MCP_BOT_NICKNAME"))
        for us, guest in play.others:
            assert us.status().nickname == NICKNAME
            assert {*us.status().warnings} == TEMPORARY
            await us.membership.say("hello", 5)
            assert (await guest.witness.heard("hello")).nick == NICKNAME


@ON_PROSODY
@pytest.mark.parametrize("protected", [0, UNLUCKY], ids=["the default room", "another room"])
async def test_the_room_password_is_sent_to_the_default_room_only(
    protected: int, stage: Scene, guests: list[Guest]
) -> None:
    await deeds.lock_before(stage, guests[protected].witness)
    stage.set(room_password=Secret(deeds.ROOM_PASSWORD))
    async with stage.participant() as eyes:
        for number, us in enumerate(eyes.rooms):
            if number == protected != 0:
                fault, _, _ = await us.fault()
                assert fault.condition == "not-authorized"
                assert "default room" in fault.message
            else:
                await us.joined()
    sent = bytes(stage.relay.passed[Way.TO_SERVER])
    assert sent.count(b"open-sesame") == 1
    presence = re.search(rb"<presence to=\"([^/]+)/[^>]*>(?:(?!</presence>).)*open-sesame", sent)
    assert presence is not None
    assert presence[1].decode() == stage.room


def _count(us: Eyes, body: str) -> int:
    return len(told(us.messages(), body))


async def test_a_kick_that_comes_with_the_session_that_goes_on_is_of_one_room(
    stage: Scene, guests: list[Guest]
) -> None:
    async with stage.participant() as eyes:
        play = Play(stage, guests, eyes)
        for us in eyes.rooms:
            await us.joined()
        stage.relay.refuse()
        await play.us.fault()
        await deeds.kick(play)
        await play.wilma.left(NICKNAME)
        await stage.relay.heal()
        fault, changed, record = await play.us.fault()
        while fault.condition == "connection-refused":
            fault, changed, record = await play.us.fault()
        assert (fault.condition, changed.phase) == ("not-allowed", WAITING)
        assert record.room == play.us.room
        for us, guest in play.others:
            await us.joined()
            assert (guest.joins, guest.leaves) == (1, 0)
    assert _resumed(eyes) == [False, True]


THROTTLED_SECONDS = 60.0
"""Limit for one of fifty rooms on a server that reads slowly, on a busy machine."""


@pytest.mark.parametrize("name", ["prosody", "ejabberd"])
async def test_as_many_rooms_as_there_may_be_are_joined_under_a_servers_default_limits(
    name: str, authority: Authority, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Both read slowly after the first 20 kB, and neither refuses anything.

    So joins need no bound on how many are under way: fifty take 5 s, of 20, and when they come back
    what they missed is filled in after another 7.
    """
    request.getfixturevalue(f"{name}_process")  # skips where there is none
    running = {"prosody": running_prosody, "ejabberd": running_ejabberd}[name]
    with running(tmp_path, authority, throttled=True) as process:
        async with scene(process, authority, way="open", rooms=MAX_ROOMS) as stage:
            stage.relay.forge(Way.TO_CLIENT, b"urn:xmpp:sm:3", b"urn:example:3")
            stage.first_pause = backoff.FIRST_SECONDS  # in which ejabberd gives us some credit
            async with stage.participant() as eyes:
                for us in eyes.rooms:
                    await us.joined(THROTTLED_SECONDS)
                stage.relay.cut()
                for us in eyes.rooms:
                    await us.fault(THROTTLED_SECONDS)
                    await us.joined(THROTTLED_SECONDS)
                await eyes.participant.memberships[0].say("hello", 20)
                faults = [one.room for one in eyes.records if fault_in(one.event) is not None]
                assert (faults, eyes.gaps()) == ([""], [])
                assert stage.relay.accepted == 2


def fault_in(event: Event) -> Fault | None:
    """The fault that an event tells of."""
    return event.fault if isinstance(event, ConnectionChanged) else None


@ON_PROSODY
async def test_rooms_may_be_added_removed_and_put_in_another_order(
    stage: Scene, guests: list[Guest]
) -> None:
    first, second, third = stage.settings.rooms
    added = stage.server.room()
    async with stage.witness(room=added) as newcomer, stage.participant() as eyes:
        for us in eyes.rooms:
            await us.joined()
        changed = stage.settings._replace(rooms=(third, added, first))
        assert eyes.participant.begin_anew(changed)
        for guest in guests:
            await guest.witness.left(NICKNAME)
        guests[2].witness.say("meanwhile")
        await newcomer.joined(NICKNAME)
        await guests[0].witness.joined(NICKNAME)
        await guests[2].witness.joined(NICKNAME)
        assert [one.name for one in eyes.participant.memberships] == [third, added, first]
        assert eyes.participant.room_jid == third
        await eyes.rooms[2].hears("meanwhile")
        await eyes.participant.memberships[0].say("to the default room", 5)
        await guests[2].witness.heard("to the default room")
        assert _count(eyes.rooms[2], "meanwhile") == 1
        assert not eyes.gaps()
        assert guests[1].joins == 1
    assert _resumed(eyes) == [False, False]
    del second


async def test_a_session_in_other_rooms_is_not_taken_up_again(
    stage: Scene, guests: list[Guest]
) -> None:
    async with stage.participant() as eyes:
        for us in eyes.rooms:
            await us.joined()
        # The server does not hear of the end, and would go on with the session.
        stage.relay.forge(Way.TO_SERVER, b"</stream:stream>", b" ")
        changed = stage.settings._replace(rooms=stage.settings.rooms[1:])
        assert eyes.participant.begin_anew(changed)
        for us in eyes.rooms[1:]:
            await us.phase(Phase.RESOLVING)
            await us.joined()
    assert _resumed(eyes) == [False, False]
    del guests


async def test_a_room_written_in_capitals_is_the_room(stage: Scene, guests: list[Guest]) -> None:
    rooms = tuple(one.partition("@") for one in stage.settings.rooms)
    stage.set(rooms=tuple(f"{local.upper()}@{domain}" for local, _, domain in rooms))
    async with stage.participant() as eyes:
        for us, guest in zip(eyes.rooms, guests, strict=True):
            await us.joined()
            sent = await us.membership.say("hello", 5)
            await guest.witness.heard("hello")
            assert sent.record.room == us.room


def _resumed(eyes: Eyes) -> list[bool]:
    return [one.event.resumed for one in eyes.records if isinstance(one.event, Connected)]
