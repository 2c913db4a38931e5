"""A participant in rooms on a real server, the network between in our hands, and its eyes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.xmpp.link import connection
from bridge.xmpp.model import backoff
from bridge.xmpp.model.events import (
    Connected,
    ConnectionChanged,
    Event,
    Gap,
    MessageReceived,
    MessageSent,
    Phase,
    Source,
)
from bridge.xmpp.model.faults import Fault, Stage
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import RoomStatus
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.queries.keepalive import Timing
from tests.e2e.noise import SOON_SECONDS
from tests.faults.relay import Relay, Secured
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

SECONDS = 60.0
"""Limit for whatever a test waits for; most of it takes less than two."""

NICKNAME = "McpDebug"

HASTY = Timing(
    ping_interval=0.4,
    ping_deadline=2.5,
    idle_before_ping=0.6,
    max_unconfirmed=4.0,
    check_interval=0.1,
)
"""The promises made short; a healthy server on a busy machine still answers in time."""

CALM = Timing(ping_interval=60.0, idle_before_ping=60.0)
"""Nothing is asked while a test lasts."""

SILENT_SECONDS = 1.0
"""The deadline of a stage in which the server is silent; the others have the bridge's own."""


ON_PROSODY = pytest.mark.parametrize("server_process", ["prosody"], indirect=True)
"""Plays on one server what is alike on each."""


class Eyes:
    """Sees each record that a participant writes, and waits for what a test expects of it.

    With `room` it sees that of one room and of the connection, and asks how things stand there.
    """

    def __init__(self, participant: Participant, room: str | None = None) -> None:
        self.participant = participant
        self.room = room
        self.rooms: list[Eyes] = []
        """The same for each room, as far as `Scene.participant` has made them."""
        self.records: list[Record] = []
        self._looked = 0
        self._news = asyncio.Event()
        participant.listen(self._see)

    @property
    def membership(self) -> Membership:
        memberships = [each for each in self.participant.memberships if each.name == self.room]
        return memberships[0] if memberships else self.participant.memberships[0]

    def status(self) -> RoomStatus:
        return self.participant.status() if self.room is None else self.membership.status()

    def try_again(self) -> None:
        """Let the participant connect now, and not after its pause."""
        assert self.participant.settings is not None
        self.participant.begin_anew(self.participant.settings)

    async def see(
        self, satisfied: Callable[[Event], object], what: str = "it", seconds: float = SECONDS
    ) -> Record:
        """The next record that satisfies; looks first at those nobody has asked about yet."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    while self._looked < len(self.records):
                        record = self.records[self._looked]
                        self._looked += 1
                        if satisfied(record.event):
                            return record
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"no {what} within {seconds:g} s; {self}") from None

    async def news(self, count: int) -> None:
        """Wait until there are more than so many records."""
        async with asyncio.timeout(SECONDS):
            while len(self.records) <= count:
                self._news.clear()
                await self._news.wait()

    async def joined(self, seconds: float = SECONDS) -> Record:
        return await self.phase(Phase.JOINED, seconds)

    async def fault(self, seconds: float = SECONDS) -> tuple[Fault, ConnectionChanged, Record]:
        """The next fault, with the event and the record that tell it."""
        record = await self.see(
            lambda event: isinstance(event, ConnectionChanged) and event.fault is not None,
            "fault",
            seconds,
        )
        assert isinstance(record.event, ConnectionChanged)
        assert record.event.fault is not None
        return record.event.fault, record.event, record

    async def phase(self, phase: Phase, seconds: float = SECONDS) -> Record:
        return await self.see(
            lambda event: isinstance(event, ConnectionChanged) and event.phase is phase,
            phase.value,
            seconds,
        )

    async def hears(self, body: str, seconds: float = SECONDS) -> MessageReceived:
        """The first message with this body, which may have come long ago."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for message in self.messages():
                        if message.body == body:
                            return message
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"did not hear {body!r} within {seconds:g} s; {self}") from None

    async def until(
        self, satisfied: Callable[[RoomStatus], object], seconds: float = SECONDS
    ) -> RoomStatus:
        """The first status that satisfies, where no event tells of it."""
        async with asyncio.timeout(seconds):
            while not satisfied(status := self.status()):  # noqa: ASYNC110 - as said
                await asyncio.sleep(0.02)  # so that it is not all that happens
        return status

    def messages(self) -> list[MessageReceived]:
        return [each.event for each in self.records if isinstance(each.event, MessageReceived)]

    def resumed(self) -> list[bool]:
        """Of each connection, whether it took up a session that there was."""
        return [each.event.resumed for each in self.records if isinstance(each.event, Connected)]

    def gaps(self) -> list[Gap]:
        """The times that it says it may have missed something in."""
        return [each.event for each in self.records if isinstance(each.event, Gap)]

    def sent(self) -> list[str]:
        """The bodies that it has handed to the room."""
        return [each.event.body for each in self.records if isinstance(each.event, MessageSent)]

    def __str__(self) -> str:
        return "\n".join(f"{each.at:.3f} {each.event}" for each in self.records)

    def _see(self, record: Record) -> None:
        if self.room is None or record.room in {"", self.room}:
            self.records.append(record)
            self._news.set()


@asynccontextmanager
async def at_work(
    participant: Participant,
    first_pause: float = SOON_SECONDS,
) -> AsyncIterator[Eyes]:
    """A participant at work, seen from its first event on; it comes back after this pause."""
    eyes = Eyes(participant)
    eyes.rooms = [Eyes(participant, each.name) for each in participant.memberships]
    shortened = pytest.MonkeyPatch()
    shortened.setattr(backoff, "FIRST_SECONDS", first_pause)
    running = asyncio.create_task(participant.run())
    try:
        yield eyes
    except BaseException as error:  # however it fails, one wants to know what was seen
        error.add_note(str(eyes))
        raise
    finally:
        shortened.undo()
        participant.leave()
        running.cancel()
        await asyncio.wait((running,))
    if not running.cancelled():
        running.result()


@dataclass
class Scene:
    """All that a row of the matrix may lay hands on."""

    process: ServerProcess
    relay: Relay
    settings: Settings
    """How the participant reaches the server: through the relay."""

    timing: Timing = CALM
    shortened: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)
    """The deadlines that are shorter than the bridge's."""
    first_pause: float = SOON_SECONDS
    """Before the participants to come come back for the first time."""

    @property
    def server(self) -> XmppServer:
        return self.process.server

    @property
    def room(self) -> str:
        """The bare JID of the default room, which nobody has been in before."""
        return self.settings.room

    def await_silence(self, stage: Stage) -> None:
        """Shorten the deadline of a stage, until the network is healed."""
        self.shortened.setitem(connection.DEADLINES, stage, SILENT_SECONDS)

    async def heal(self) -> None:
        """Let the network be good again, and the deadlines long enough for a busy machine."""
        self.shortened.undo()
        await self.relay.heal()

    def set(self, **changes: object) -> None:
        """Change the settings of the participant to come."""
        self.settings = self.settings._replace(**changes)  # type: ignore[arg-type]

    def witness(self, nick: str = "Wilma", *, room: str | None = None) -> Witness:
        """Somebody else, who reaches the server directly; in the default room unless told."""
        return Witness(self.server, self.server.witness, room or self.room, nick)

    @asynccontextmanager
    async def participant(self, settings: Settings | None = None) -> AsyncIterator[Eyes]:
        participant = Participant(settings or self.settings, timing=self.timing)
        async with at_work(participant, self.first_pause) as eyes:
            yield eyes


@asynccontextmanager
async def scene(
    process: ServerProcess,
    authority: Authority,
    *,
    way: Literal["starttls", "direct", "open"] = "starttls",
    rooms: int = 1,
) -> AsyncIterator[Scene]:
    """A scene on this server, with so many rooms.

    The relay sees ciphertext, or, `open`, the stanzas themselves: it then ends TLS on both sides
    under the server's own certificate, which leaves even channel bindings whole.
    """
    server = process.server
    port = server.port("starttls" if way == "starttls" else "direct")
    secured = None
    if way == "open":
        as_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        as_server.load_cert_chain(process.certificate.chain, process.certificate.key)
        as_client = ssl.create_default_context(cafile=str(authority.ca_file))
        secured = Secured(as_server, as_client, server.domain)
    async with Relay(server.host, port, secured) as relay:
        scheme: Literal["xmpp", "xmpps"] = "xmpp" if way == "starttls" else "xmpps"
        settings = Settings(
            username=server.bot.username,
            domain=server.domain,
            password=Secret(server.bot.password),
            rooms=tuple(server.room() for _ in range(rooms)),
            nickname=NICKNAME,
            service=Service(scheme, "127.0.0.1", relay.port),
            tls_ca_file=server.ca_file,
        )
        stage = Scene(process, relay, settings)
        try:
            yield stage
        finally:
            stage.shortened.undo()


def told(messages: list[MessageReceived], *bodies: str) -> list[tuple[str, Source]]:
    """Those of `messages` that have one of these bodies, in order, with how they came."""
    return [(each.body, each.source) for each in messages if each.body in bodies]


async def configure(wilma: Witness, **options: str) -> None:
    """Change the room's configuration; names without their `muc#roomconfig_`."""
    form = await wilma.muc.get_room_config(wilma.room)
    for name, value in options.items():
        form.set_values({f"muc#roomconfig_{name}": value})
    await wilma.muc.set_room_config(wilma.room, form)
