"""A second occupant, who sees what the room sees and can say so."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from hashlib import pbkdf2_hmac
from typing import Any, Self, TypeVar

from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.util.sasl.mechanisms import SCRAM
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from tests.servers.server import Account, Transport, XmppServer

Found = TypeVar("Found")

JOIN_SECONDS = 60.0
"""Limit for connecting, logging in and joining together."""
PATIENCE_SECONDS = 30.0
"""How long a witness waits for what a test expects, unless the test says otherwise."""
LEAVE_SECONDS = 20.0
"""Limit for the room to confirm that we left."""


def _derived(self: SCRAM, password: bytes, salt: bytes, iterations: int) -> bytes:
    return pbkdf2_hmac(self.hash_name.replace("-", ""), password, salt, iterations)


# slixmpp derives the key of a login in a loop of its own, which took a quarter of all the processor
# time of the tests in which somebody logs in.
SCRAM.Hi = _derived  # type: ignore[method-assign,assignment]


class RoomError(Exception):
    """The witness is not in the room, or the room refused it something.

    `condition` is the standard's word for why, or "disconnected" when the stream ended.
    """

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"{condition}: {text}")
        self.condition = condition


@dataclass(frozen=True)
class Heard:
    """A groupchat message with a body, as the room sent it to the witness."""

    nick: str
    body: str
    id: str


class Witness:
    """An occupant on a connection of its own: in the room from `async with` to its end."""

    def __init__(
        self,
        server: XmppServer,
        account: Account,
        room: str,
        nick: str,
        transport: Transport | None = None,
    ) -> None:
        self.room = room
        self.nick = nick
        self.created = False
        """Whether the room did not exist before, so that we own it."""
        self._server = server
        self._account = account
        self._transport = transport or server.transports[0]
        self._client: ClientXMPP | None = None
        self._started = False
        self._joined = False
        self._refused: RoomError | None = None
        self._occupants: set[str] = set()
        self._heard: list[Heard] = []
        self._departures: list[str] = []
        self._news = asyncio.Event()

    @property
    def client(self) -> ClientXMPP:
        """The slixmpp client, for what this class has no word for."""
        assert self._client is not None
        return self._client

    @property
    def muc(self) -> Any:
        """slixmpp's XEP-0045 plugin: set_subject, set_affiliation, destroy and the like."""
        return self.client.plugin["xep_0045"]

    @property
    def occupants(self) -> frozenset[str]:
        """The nicknames in the room now, our own among them."""
        return frozenset(self._occupants)

    def say(self, text: str) -> str:
        """Send a message to the room and return its id."""
        message = self.client.make_message(mto=self.room, mbody=text, mtype="groupchat")
        message["id"] = self.client.new_id()
        message.send()
        return str(message["id"])

    async def heard(
        self, what: str | Callable[[Heard], bool], seconds: float = PATIENCE_SECONDS
    ) -> Heard:
        """The next message with this body, or that satisfies the predicate; our own count too.

        Looks first at what came since we joined. Each message is handed out once, so that asking
        twice waits for two.
        """

        def found() -> Heard | None:
            for index, message in enumerate(self._heard):
                if message.body == what if isinstance(what, str) else what(message):
                    return self._heard.pop(index)
            return None

        return await self._await(found, f"hear {what!r}", seconds)

    async def joined(self, nick: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when the nickname is in the room; earlier departures of it are forgotten."""
        await self._await(lambda: nick in self._occupants or None, f"see {nick!r} join", seconds)
        self._departures = [gone for gone in self._departures if gone != nick]

    async def left(self, nick: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when the nickname has gone, or changed; each departure counts once."""
        await self._await(lambda: nick in self._departures or None, f"see {nick!r} leave", seconds)
        self._departures.remove(nick)

    async def kick(self, nick: str, reason: str = "") -> None:
        """Put somebody out; the room must hold us for its moderator, as it does its creator."""
        try:
            await self.muc.set_role(
                self.room, nick, "none", reason=reason, timeout=int(PATIENCE_SECONDS)
            )
        except IqError as error:
            raise RoomError(error.condition, f"cannot kick {nick!r}") from error
        except IqTimeout as error:
            raise TimeoutError(f"the room did not answer the kick of {nick!r}") from error

    async def __aenter__(self) -> Self:
        client = self._client = self._make_client()
        async with AsyncExitStack() as failing:
            failing.push_async_callback(self._close, client)
            client.connect(self._server.host, self._server.port(self._transport))
            try:
                async with asyncio.timeout(JOIN_SECONDS):
                    await self._until(lambda: self._started or None)
                    self._send_join()
                    await self._until(lambda: self._joined or None)
            except TimeoutError:
                awaited = "answer of the room" if self._started else "session"
                raise TimeoutError(
                    f"{self.nick}: no {awaited} within {JOIN_SECONDS:.0f} s"
                ) from None
            failing.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._refused is None and self.nick in self._occupants:
            self.client.send_presence(pto=f"{self.room}/{self.nick}", ptype="unavailable")
            with suppress(TimeoutError, RoomError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._until(lambda: self.nick not in self._occupants or None)
        await self._close(self.client)
        self._client = None

    def _make_client(self) -> ClientXMPP:
        context = ssl.create_default_context(cafile=self._server.ca_file)
        # Made here and not in __init__, since it takes the loop that runs now for its own.
        client = ClientXMPP(self._account.jid, self._account.password, ssl_context=context)
        client.enable_direct_tls = self._transport == "direct"
        client.enable_starttls = self._transport == "starttls"
        client.enable_plaintext = self._transport == "plaintext"
        client.plugin["feature_mechanisms"].unencrypted_scram = self._transport == "plaintext"
        client.register_plugin("xep_0045")
        client.register_plugin("xep_0199", {"keepalive": False})  # to answer pings
        client.register_handler(Callback("heard", StanzaPath("message"), self._on_message))
        client.register_handler(Callback("seen", StanzaPath("presence"), self._on_presence))
        client.add_event_handler("session_start", self._on_session_start)
        client.add_event_handler("failed_all_auth", self._on_failed_auth)
        client.add_event_handler("connection_failed", self._on_disconnected)
        client.add_event_handler("disconnected", self._on_disconnected)
        return client

    def _send_join(self) -> None:
        # No history: a witness tells what happened while it was there.
        self.muc.make_join_stanza(self.room, self.nick, maxstanzas=0).send()

    async def _close(self, client: ClientXMPP) -> None:
        client.cancel_connection_attempt()
        if client.is_connected():
            await client.disconnect(wait=1.0)
        # slixmpp starts this task with the connection and never ends it.
        sender = client._run_out_filters  # noqa: SLF001 - as said
        if sender is not None:
            sender.cancel()
            await asyncio.wait([sender])

    def _on_session_start(self, _: object) -> None:
        self._started = True
        self._news.set()

    def _on_failed_auth(self, _: object) -> None:
        self._refuse(RoomError("not-authorized", f"{self._account.jid} cannot log in"))

    def _on_disconnected(self, reason: object) -> None:
        self._refuse(RoomError("disconnected", str(reason or "the stream ended")))

    def _refuse(self, error: RoomError) -> None:
        if self._refused is None:
            self._refused = error
        self._news.set()

    def _on_message(self, message: StanzaBase) -> None:
        if message["type"] != "groupchat" or message["from"].bare != self.room:
            return
        if body := message["body"]:
            self._heard.append(Heard(message["from"].resource, body, message["id"]))
            self._news.set()

    def _on_presence(self, presence: StanzaBase) -> None:
        if presence["from"].bare != self.room:
            return
        nick = presence["from"].resource
        match presence.xml.get("type"):
            case None:
                self._occupants.add(nick)
                if 110 in (codes := presence["muc"]["status_codes"]):
                    self.nick = nick  # the room decides how it is spelt
                    self.created = self.created or 201 in codes
                    self._joined = True
            case "unavailable":
                self._occupants.discard(nick)
                self._departures.append(nick)
            case "error" if not self._joined:
                error = presence["error"]
                self._refuse(RoomError(error["condition"], error["text"]))
        self._news.set()

    async def _await(self, seek: Callable[[], Found | None], what: str, seconds: float) -> Found:
        try:
            async with asyncio.timeout(seconds):
                return await self._until(seek)
        except TimeoutError:
            raise TimeoutError(
                f"{self.nick} did not {what} within {seconds:g} s;"
                f" occupants: {sorted(self._occupants)}; departures: {self._departures};"
                f" heard: {[(message.nick, message.body) for message in self._heard]}"
            ) from None

    async def _until(self, seek: Callable[[], Found | None]) -> Found:
        """What `found` returns once it is not None, asked again at each news."""
        while (result := seek()) is None:
            if self._refused is not None:
                raise self._refused
            self._news.clear()
            await self._news.wait()
        return result
