"""Every fault that real servers, networks and occupants can be made to show: one row each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import pytest

from bridge.settings.values import Secret
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model import backoff
from bridge.xmpp.model.backoff import FIRST_SECONDS
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import Stage
from bridge.xmpp.queries.keepalive import Timing
from tests.faults import deeds
from tests.faults.deeds import Guest, Play
from tests.faults.relay import Relay, Treatment, Way
from tests.faults.scene import (
    CALM,
    HASTY,
    NICKNAME,
    Scene,
    configure,
    scene,
    told,
)
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.servers.server import Account
from tests.servers.witness import Witness

Deed: TypeAlias = Callable[[Play], Awaitable[None]]

KICKED_SECONDS = 1.0
"""The pause after a kick here; users are promised a minute, which tests/xmpp/model/test_backoff.py
holds."""

UNLUCKY = 1
"""The room, of three, that meets its fate."""

SLOW = Timing(ping_interval=4.0, idle_before_ping=60.0, check_interval=0.1, ping_deadline=2.5)
"""The server is asked only after a room did not answer to a join."""


@dataclass(frozen=True)
class Row:
    """One fault, and what a user sees of it."""

    phase: Phase
    condition: str
    """One of several, with blanks between, where servers differ."""
    hint: str
    """What the hint must name: most often the setting to change."""

    message: str = ""
    """What the sentence must name."""

    do: Deed | None = None
    """Done while the participant is in the room; without it, it does not get in to begin with."""

    before: Deed | None = None
    """Done before we come."""

    mend: Deed | None = None
    """What ends the fault, where it does not pass by itself."""

    back: bool = True
    """Whether the participant comes back within the test."""

    room: int | None = None
    """The room of three whose affair it is, which the others and the connection outlive."""

    at_once: bool = False
    """Whether we are back before a user could notice."""

    pause: float | None = None
    """Seconds until the next attempt, where that is promised."""

    way: Literal["starttls", "direct", "open"] = "starttls"
    timing: Timing = CALM
    """How the participant looks after its connection."""

    on_both: bool = False
    """Whether the server has a part in it, so that Prosody alone does not show it."""


# What is done. First the network.


def _network(what: Callable[[Relay], None]) -> Deed:
    async def do(play: Play) -> None:
        what(play.scene.relay)

    return do


def _swallow(*ways: Way) -> Deed:
    return _network(lambda relay: relay.treat(Treatment.SWALLOW, *ways))


async def _corrupt_to_client(play: Play) -> None:
    play.scene.relay.treat(Treatment.CORRUPT, Way.TO_CLIENT)
    play.wilma.say("this will be garbled")


def _from(way: Way, moment: int | bytes, silent: Stage | None = None) -> Deed:
    """From a moment of the first attempt on, the network is a black hole, or else garbles."""

    async def before(play: Play) -> None:
        relay = play.scene.relay
        if silent is not None:
            play.scene.await_silence(silent)
        treatment = Treatment.CORRUPT if silent is None else Treatment.SWALLOW
        relay.once(way, moment, lambda: relay.treat(treatment))

    return before


async def _heal(play: Play) -> None:
    await play.scene.heal()


# Then the people.


async def _ban(play: Play) -> None:
    await _affiliate(play, "outcast", "never again")


async def _affiliate(play: Play, affiliation: str, reason: str = "") -> None:
    bot = play.scene.server.bot.jid
    await play.wilma.muc.set_affiliation(play.wilma.room, affiliation, jid=bot, reason=reason)


async def _lift_the_ban(play: Play) -> None:
    await _affiliate(play, "member")


async def _close(play: Play) -> None:
    """Let none but members in, and be, from now on."""
    await configure(play.wilma, membersonly="1")


async def _open(play: Play) -> None:
    await configure(play.wilma, membersonly="0")


async def _make_member_and_close(play: Play) -> None:
    await _affiliate(play, "member")
    await _close(play)


async def _end_membership(play: Play) -> None:
    await _affiliate(play, "none")


async def _unlock(play: Play) -> None:
    await configure(play.wilma, passwordprotectedroom="0", roomsecret="")


async def _move(play: Play) -> None:
    venue = f"new@{play.scene.server.muc}"
    await play.wilma.muc.destroy(play.wilma.room, reason="moved", altroom=venue)


async def _replace(play: Play) -> None:
    """Log in as the very same session."""
    jid = play.us.status().jid
    assert jid is not None
    bot = play.scene.server.bot
    twin = Account(bot.username, bot.password, jid.partition("@")[2])
    async with Witness(play.scene.server, twin, play.scene.room, "Twin"):
        pass


async def _in_no_hurry(play: Play) -> None:
    """Let us see what is done to the end before we come back."""
    play.scene.first_pause = FIRST_SECONDS


def _elsewhere(**changes: object) -> Deed:
    async def before(play: Play) -> None:
        play.scene.set(**changes)

    return before


# And one room of three.


async def _drop(play: Play) -> None:
    """Make the room believe that our client bounces what it is sent."""
    relay = play.scene.relay
    relay.forge(Way.TO_SERVER, b'type="groupchat"', b'type="error"')
    gone = b"<recipient-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
    error = b"<error type='cancel'>" + gone + b"</error>"
    relay.forge(Way.TO_SERVER, b"<body>bounce</body>", error)
    saying = asyncio.create_task(play.us.membership.say("bounce", 30))
    await play.wilma.left(NICKNAME)
    relay.forge(Way.TO_SERVER, b'type="error"', b'type="groupchat"')
    await asyncio.wait((saying,))
    assert saying.exception() is not None


async def _fall_silent(play: Play) -> None:
    """Let nothing that comes from the room be known as that."""
    name = play.wilma.room.partition("@")[0].encode()
    play.scene.relay.forge(Way.TO_CLIENT, name, name[::-1])


async def _forget(play: Play) -> None:
    """Let us be put out of the room without our hearing of it."""
    relay, passed = play.scene.relay, asyncio.Event()
    await _fall_silent(play)
    relay.once(Way.TO_CLIENT, rb"unavailable[\s\S]*?</presence>", passed.set)
    await play.wilma.kick(NICKNAME)
    await passed.wait()
    await relay.heal()


async def _at_no_service(play: Play) -> None:
    rooms = list(play.scene.settings.rooms)
    rooms[UNLUCKY] = "room@nowhere.invalid"
    play.scene.set(rooms=tuple(rooms))


WAITING, FAILED = Phase.WAITING, Phase.FAILED
_lost = partial(Row, WAITING, "connection-reset", "by itself")
_hole = partial(Row, WAITING, "connection-timeout", "network", mend=_heal, timing=HASTY)
_refused = partial(Row, FAILED, back=False, on_both=True)
_fate = partial(Row, room=UNLUCKY, way="open", on_both=True)
"""What becomes of one room is the affair of that room."""


def _silence(
    stage: Stage, way: Way, moment: int | bytes, by: Literal["starttls", "direct", "open"]
) -> Row:
    """A black hole in one stage of connecting, which the message names."""
    what = (WAITING, "connection-timeout", "XMPP_SERVICE", f"the step {stage.value}")
    return Row(*what, before=_from(way, moment, stage), mend=_heal, way=by)


TO_SERVER, TO_CLIENT = Way
PROCEED = b"<proceed[^>]*>"
GARBLED = _from(TO_CLIENT, PROCEED)
NO_ANSWER = _from(TO_SERVER, b"<presence[^>]*>", Stage.JOIN)

ROWS = {
    "the connection is cut": _lost(do=_network(Relay.cut)),
    "the connection is reset": _lost(do=_network(Relay.reset)),
    "the port is closed": _lost(do=_network(Relay.refuse), mend=_heal),
    "a black hole while joined": _hole(do=_swallow()),
    "a black hole towards the server": _hole(do=_swallow(TO_SERVER)),
    "a black hole towards us": _hole(do=_swallow(TO_CLIENT)),
    "garbled bytes": Row(WAITING, "tls-failed", "garbles", do=_corrupt_to_client, mend=_heal),
    "a garbled handshake": Row(WAITING, "tls-handshake-failed", "TLS", before=GARBLED, mend=_heal),
    "silence before TLS": _silence(Stage.TLS, TO_SERVER, 0, "starttls"),
    "silence in the TLS handshake": _silence(Stage.TLS, TO_CLIENT, PROCEED, "starttls"),
    "silence in its middle": _silence(Stage.TLS, TO_CLIENT, 100, "direct"),
    "silence at SASL": _silence(Stage.SASL, TO_SERVER, b"<auth[^>]*>", "open"),
    "silence at binding": _silence(Stage.BIND, TO_SERVER, b"<bind[^>]*>", "open"),
    "silence at joining": Row(
        *(WAITING, "remote-server-timeout", "MUC_ROOM"),
        before=NO_ANSWER,
        mend=_heal,
        way="open",
        timing=SLOW,
    ),
    "a member no more": _refused(
        "registration-required", "member", before=_make_member_and_close, do=_end_membership
    ),
    "another session takes over": Row(
        WAITING, "conflict", "same account", do=_replace, before=_in_no_hurry, on_both=True
    ),
    "a domain that the server does not serve": _refused(
        *("host-unknown", "XMPP_DOMAIN", "elsewhere.example"),
        before=_elsewhere(domain="elsewhere.example"),
    ),
    "a wrong password": _refused(
        *("not-authorized", "XMPP_PASSWORD"),
        before=_elsewhere(password=Secret("not-the-password")),
        way="open",
    ),
    "kicked": _fate(
        *(WAITING, "not-allowed", "minute", "out with you"), do=deeds.kick, pause=KICKED_SECONDS
    ),
    "kicked from the default room": _fate(WAITING, "not-allowed", "minute", do=deeds.kick, room=0),
    "banned": _fate(FAILED, "forbidden", "ban", "never again", do=_ban, mend=_lift_the_ban),
    "banned before": _fate(FAILED, "forbidden", "ban", "banned", before=_ban, mend=_lift_the_ban),
    "members only": _fate(FAILED, "registration-required", "member", before=_close, mend=_open),
    "members only now": _fate(FAILED, "registration-required", "member", do=_close, mend=_open),
    "a password that we do not have": _fate(
        FAILED, "not-authorized", "first in MUC_ROOM", before=deeds.lock, mend=_unlock
    ),
    "destroyed": _fate(
        *(FAILED, "gone", "MUC_ROOM to the new place"),
        '("moved"). Its owner names a new place: "new@conference.localhost".',
        do=_move,
        back=False,
    ),
    "dropped for technical reasons": _fate(
        WAITING, "recipient-unavailable", "by itself", do=_drop, at_once=True, pause=0.0
    ),
    "forgotten": _fate(
        WAITING, "not-acceptable", "by itself", do=_forget, at_once=True, pause=0.0, timing=HASTY
    ),
    "fallen silent": _fate(
        *(WAITING, "remote-server-timeout", "may be down"),
        do=_fall_silent,
        mend=_heal,
        timing=HASTY,
    ),
    "on a service that does not exist": _fate(
        *(FAILED, "remote-server-not-found service-unavailable not-allowed forbidden", "MUC_ROOM"),
        before=_at_no_service,
        back=False,
    ),
}
"""What is done, and what must come of it."""


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The row of this name."""
    return ROWS[request.param]


@pytest.fixture
async def stage(
    row: Row, server_process: ServerProcess, authority: Authority
) -> AsyncIterator[Scene]:
    """A scene as the row wants it."""
    rooms = 1 if row.room is None else 3
    async with scene(server_process, authority, way=row.way, rooms=rooms) as stage:
        stage.timing = row.timing
        yield stage


@pytest.mark.parametrize(
    ("server_process", "row"),
    [("prosody", name) for name in ROWS]
    + [("ejabberd", name) for name, row in ROWS.items() if row.on_both],
    indirect=True,
)
async def test_every_fault_ends_in_the_room_or_in_the_truth(
    row: Row, stage: Scene, guests: list[Guest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "MINUTE_SECONDS", KICKED_SECONDS)
    play = Play(stage, guests, row.room)
    if row.before is not None:
        await row.before(play)
    async with stage.participant() as eyes:
        play.eyes = eyes
        for us, _ in play.others:
            await us.joined()
        if row.do is not None:
            await play.us.joined()
            await play.us.membership.say("before", 30)
            await play.wilma.heard("before")
            await row.do(play)
        await _expect_the_fault(row, play)
        await _expect_the_others_unharmed(play)
        if row.back:
            await _expect_it_back(row, play)
            await _expect_the_others_unharmed(play)
        if row.room is not None or not row.back:
            # Each wrong password counts with the server: one login is one.
            assert stage.relay.passed[Way.TO_SERVER].count(b"<auth") <= stage.relay.accepted == 1
    assert "from outside" not in eyes.sent()
    bodies = [each.body for each in play.us.messages()]
    assert len(bodies) == len(set(bodies)), f"told twice: {bodies}"


async def _expect_the_fault(row: Row, play: Play) -> None:
    fault, changed, record = await play.us.fault()
    assert changed.phase is row.phase
    assert fault.condition in row.condition.split()
    assert row.hint in fault.hint
    assert row.message in fault.message
    assert row.room is None or record.room == play.us.room
    if row.pause is not None:
        assert changed.next_attempt_in_ms == row.pause * 1_000
    if row.at_once:
        return
    status = play.us.status()
    assert not status.connected
    assert status.last_error is not None
    assert status.last_error.fault == fault
    if row.phase is FAILED or row.room is not None:
        assert status.phase is row.phase
    else:
        assert status.next_attempt_at is not None
        assert status.next_attempt_at >= record.at
    with pytest.raises(NotInRoomError):
        await play.us.membership.say("from outside", 30)


async def _expect_the_others_unharmed(play: Play) -> None:
    for us, guest in play.others:
        status = us.status()
        assert (status.phase, status.last_error) == (Phase.JOINED, None)
        await us.membership.say("still here", 30)
        await guest.witness.heard("still here")
        assert (guest.joins, guest.leaves) == (1, 0)


async def _expect_it_back(row: Row, play: Play) -> None:
    us, wilma = play.us, play.wilma
    if row.do is not None:
        wilma.say("meanwhile")
        await wilma.heard("meanwhile")
    if row.mend is not None:
        await row.mend(play)
        if row.room is not None:  # a user tries again
            play.eyes.participant.begin_anew(play.scene.settings)
    await us.joined()
    await us.membership.say("after", 30)
    await wilma.heard("after")
    with pytest.raises(TimeoutError):
        await wilma.heard("after", 0)
    if row.do is not None:
        await us.hears("meanwhile")
        assert len(told(us.messages(), "meanwhile")) == 1
    status = us.status()
    assert (status.connected, status.nickname) == (True, NICKNAME)
