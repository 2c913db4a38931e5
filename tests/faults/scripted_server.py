"""A server that says what a test has it say, and is honest where the test says nothing.

It shares no code with the bridge: what it knows of the protocols it has from the standards.
"""

import asyncio
import hashlib
import hmac
import ssl
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, cast
from xml.etree.ElementTree import Element, XMLPullParser
from xml.sax.saxutils import quoteattr

from tests.servers.certificates import Certificate

DOMAIN = "localhost"
ROOM = "room@conference.localhost"
USERNAME, PASSWORD = "bot", "bot-passes-4711"
NICKNAME = "McpDebug"
STEP_SECONDS = 60.0
"""Limit for what the client is to send next."""

STREAMS = "http://etherx.jabber.org/streams"
TLS = "urn:ietf:params:xml:ns:xmpp-tls"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
BIND = "urn:ietf:params:xml:ns:xmpp-bind"
STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams"
STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"
MUC_USER = "http://jabber.org/protocol/muc#user"

HEADER = (
    f"<?xml version='1.0'?><stream:stream from='{DOMAIN}' id='lie' version='1.0'"
    f" xmlns='jabber:client' xmlns:stream='{STREAMS}'>"
)
STARTTLS = f"<starttls xmlns='{TLS}'><required/></starttls>"
PROCEED = f"<proceed xmlns='{TLS}'/>"


class ClientGoneError(Exception):
    """The client hung up."""


class Wire:
    """One connection, seen from the server: `heard` is all that came, as it came."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext | None,
        certificate: Certificate | None,
    ) -> None:
        self.heard = b""
        self.certificate = certificate
        self.jid = f"{USERNAME}@{DOMAIN}/scripted"
        self._reader = reader
        self._writer = writer
        self._context = context
        self._parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
        self._depth = 0

    @property
    def tls(self) -> ssl.SSLObject | None:
        secured: ssl.SSLObject | None = self._writer.get_extra_info("ssl_object")
        return secured

    async def open(self, features: str) -> None:
        """Take the client's header; send ours, and the features."""
        await self.header()
        self.send(f"{HEADER}<stream:features>{features}</stream:features>")

    async def header(self) -> None:
        self._parser = XMLPullParser(("start", "end"))
        self._depth = 0
        await self._next(1, "start")

    async def element(self, *names: str, refusal: str = "service-unavailable") -> Element:
        """The next element that the client sends, which must have one of these names.

        Questions that the script has nothing to say to are refused, as any server does.
        """
        element = await self._next(1, "end")
        while names and local(element) == "iq" and "iq" not in names:
            to = element.get("to", "")
            error = f"<error type='cancel'><{refusal} xmlns='{STANZA_ERRORS}'/></error>"
            whence = f" from='{to}'" if to else ""
            self.send(f"<iq type='error' id='{element.get('id')}'{whence}>{error}</iq>")
            element = await self._next(1, "end")
        assert not names or local(element) in names, f"{element.tag} came instead of {names}"
        return element

    def send(self, xml: str | bytes) -> None:
        self._writer.write(xml.encode() if isinstance(xml, str) else xml)

    async def sent(self) -> None:
        """Return once what was sent is on its way; raises `ClientGoneError`."""
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientGoneError from error

    async def start_tls(self) -> None:
        assert self._context is not None
        await self._writer.start_tls(self._context)

    async def hello(self) -> None:
        """Take the beginning of whatever the client sends next."""
        await self._read()

    async def gone(self) -> None:
        """Take what comes until the client hangs up; raises `ClientGoneError`."""
        while True:
            await self._read()

    def hang_up(self) -> None:
        self._writer.close()

    def shut_down(self) -> None:
        """Say that nothing more comes, and leave what the client says unread."""
        self._writer.write_eof()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(65536)
        except (ConnectionError, ssl.SSLError) as error:
            raise ClientGoneError from error
        if not data:
            raise ClientGoneError
        self.heard += data
        return data

    async def _next(self, depth: int, wanted: str) -> Element:
        async with asyncio.timeout(STEP_SECONDS):
            while True:
                for kind, element in cast("Any", self._parser.read_events()):
                    self._depth += 1 if kind == "start" else -1
                    if self._depth == 0:
                        raise ClientGoneError
                    if (kind, self._depth) == (wanted, depth):
                        return cast("Element", element)
                self._parser.feed(await self._read())


Step: TypeAlias = Callable[[Wire], Awaitable[None]]
"""A part of a conversation."""


def local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def mechanisms(*names: str, bindings: Sequence[str] = ()) -> str:
    """The feature that offers logins; with `bindings`, channel bindings as XEP-0440 has them."""
    listed = "".join(f"<mechanism>{name}</mechanism>" for name in names)
    named = "".join(f"<channel-binding type='{each}'/>" for each in bindings)
    types = f"<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>{named}</sasl-channel-binding>"
    return f"<mechanisms xmlns='{SASL}'>{listed}</mechanisms>{types if bindings else ''}"


def sasl(name: str, content: str | bytes = b"") -> str:
    raw = content.encode() if isinstance(content, str) else content
    return f"<{name} xmlns='{SASL}'>{b64encode(raw).decode()}</{name}>"


def content(element: Element) -> str:
    """What a SASL element of the client carries."""
    return b64decode(element.text or "").decode()


def sasl_failure(condition: str, text: str = "") -> str:
    said = f"<text xml:lang='en'>{text}</text>" if text else ""
    return f"<failure xmlns='{SASL}'><{condition}/>{said}</failure>"


def stream_error(condition: str, content: str = "") -> str:
    cause = f"<{condition} xmlns='{STREAM_ERRORS}'>{content}</{condition}>"
    return f"<stream:error>{cause}</stream:error></stream:stream>"


def present(nickname: str, *codes: int, content: str = "", room: str = ROOM) -> str:
    """Presence of an occupant."""
    listed = "".join(f"<status code='{code}'/>" for code in codes)
    item = "<item affiliation='none' role='participant'/>"
    extension = f"<x xmlns='{MUC_USER}'>{item}{listed}</x>"
    return f"<presence from={quoteattr(f'{room}/{nickname}')}>{content}{extension}</presence>"


def said(nickname: str, body: str, id_: str = "m", content: str = "", room: str = ROOM) -> str:
    """A message of an occupant to the room."""
    sender = quoteattr(f"{room}/{nickname}" if nickname else room)
    return (
        f"<message type='groupchat' id='{id_}' from={sender}><body>{body}</body>{content}</message>"
    )


def subject(text: str) -> str:
    return f"<message type='groupchat' from='{ROOM}'><subject>{text}</subject></message>"


# The honest steps.


async def secure(wire: Wire) -> None:
    await wire.open(STARTTLS)
    await wire.element("starttls")
    wire.send(PROCEED)
    await wire.start_tls()


@dataclass(frozen=True)
class Scram:
    """A login by SCRAM (RFC 5802), each part of which may be made a lie."""

    offered: tuple[str, ...] = ("SCRAM-SHA-256",)
    bindings: tuple[str, ...] = ()
    """What the features say of channel bindings (XEP-0440)."""
    hides_plus: bool = False
    """Somebody in between cut `-PLUS` out of what we offered, and we know better."""
    iterations: str = "4096"

    hashed: str | None = None
    """What we hash of our offer (XEP-0474), before anybody in between changes it."""
    signature: Callable[[bytes], bytes] = lambda right: b"v=" + b64encode(right)
    """What comes with the success, from what ought to."""

    async def __call__(self, wire: Wire) -> None:
        await wire.open(mechanisms(*self.offered, bindings=self.bindings))
        auth = await wire.element("auth")
        mechanism = auth.get("mechanism", "")
        assert mechanism in self.offered
        name = {"512": "sha512", "256": "sha256"}.get(
            mechanism.removesuffix("-PLUS").removeprefix("SCRAM-SHA-"), "sha1"
        )
        first = content(auth)
        flag, _, bare = first.split(",", 2)
        header = f"{flag},,".encode()
        client_nonce = bare.partition(",r=")[2]
        salt = b"salt-of-the-earth"
        challenge = f"r={client_nonce}-ours,s={b64encode(salt).decode()},i={self.iterations}"
        if self.hashed is not None:
            digest = hashlib.new(name, self.hashed.encode()).digest()
            challenge += f",h={b64encode(digest).decode()}"
        wire.send(sasl("challenge", challenge))
        final = content(await wire.element("response"))
        unproven, _, proof = final.rpartition(",p=")
        bound = header + (_binding(wire, flag.removeprefix("p=")) if flag[0] == "p" else b"")
        salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, int(self.iterations))
        client_key = hmac.digest(salted, b"Client Key", name)
        signed = f"{bare},{challenge},{unproven}".encode()
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        channel = unproven.split(",")[0]
        proven = b64decode(proof) == expected and channel == f"c={b64encode(bound).decode()}"
        if not proven or mechanism.endswith("-PLUS") != (flag[0] == "p"):
            wire.send(sasl_failure("not-authorized"))
            await wire.gone()
        if flag == "y" and self.hides_plus:
            # RFC 5802, section 6: a client that would have bound was not offered to.
            wire.send(sasl_failure("malformed-request"))
            await wire.gone()
        server_key = hmac.digest(salted, b"Server Key", name)
        wire.send(sasl("success", self.signature(hmac.digest(server_key, signed, name))))


def _binding(wire: Wire, type_: str) -> bytes:
    """The data of a channel binding (RFC 5929), as this side of the connection has it."""
    assert wire.tls is not None
    if type_ == "tls-unique":
        data = wire.tls.get_channel_binding("tls-unique")
        assert data
        return data
    assert type_ == "tls-server-end-point"
    assert wire.certificate is not None
    # trustme signs with SHA-256.
    return hashlib.sha256(wire.certificate.der).digest()


async def bind(wire: Wire) -> None:
    await wire.open(f"<bind xmlns='{BIND}'/>")
    request = await wire.element("iq")
    wire.send(bound(request.get("id", ""), wire.jid))


def bound(id_: str, jid: str, sender: str = "") -> str:
    from_ = f" from='{sender}'" if sender else ""
    payload = f"<bind xmlns='{BIND}'><jid>{jid}</jid></bind>"
    return f"<iq type='result' id='{id_}'{from_}>{payload}</iq>"


async def join(wire: Wire) -> None:
    # As a room that nobody has made yet.
    presence = await wire.element("presence", refusal="item-not-found")
    nickname = presence.get("to", "").partition("/")[2]
    wire.send(present("Wilma") + present(nickname, 110) + subject(""))


async def stand(wire: Wire) -> None:
    """Reflect what is said and answer pings, until the client goes."""
    while True:
        element = await wire.element()
        id_, to = element.get("id", ""), element.get("to")
        sender = f" from='{to}'" if to else ""
        match local(element), element.get("type"):
            case "message", "groupchat":
                wire.send(said(NICKNAME, element.findtext("{jabber:client}body") or "", id_))
            case "iq", "get" | "set":
                wire.send(f"<iq type='result' id='{id_}'{sender}/>")
            case _:
                pass


def saying(*xml: str | bytes) -> Step:
    """A step that says this, whatever the client says, and waits for it to go."""

    async def say(wire: Wire) -> None:
        for each in xml:
            wire.send(each)
            await wire.sent()
        await wire.gone()

    return say


def cut_off_after(*xml: str | bytes) -> Step:
    """A step that says this and hangs up."""

    async def say(wire: Wire) -> None:
        for each in xml:
            wire.send(each)
        wire.hang_up()
        await wire.gone()

    return say


@dataclass(frozen=True)
class Script:
    """What the server does on a connection. A test puts its lie in the place of one step."""

    secure: Step | None = None
    """None: the stream is not secured, or was from the first byte."""
    authenticate: Step = Scram()
    bind: Step = bind
    join: Step = join
    stand: Step = stand

    async def __call__(self, wire: Wire) -> None:
        for step in (self.secure, self.authenticate, self.bind, self.join, self.stand):
            if step is not None:
                await step(wire)

    def with_starttls(self) -> "Script":
        return replace(self, secure=self.secure or secure)


HONEST = Script()


class ScriptedServer:
    """Plays `scripts` to one connection after another, the last to all that follow."""

    def __init__(
        self,
        *scripts: Script,
        certificate: Certificate | None = None,
        direct_tls: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        self.wires: list[Wire] = []
        """The connections so far."""
        starttls = certificate is not None and not direct_tls
        self._scripts = [
            each.with_starttls() if starttls else each for each in scripts or (HONEST,)
        ]
        self._certificate = certificate
        self.direct_tls = direct_tls
        self.host = host
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate.chain, certificate.key)
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def heard(self) -> bytes:
        """All that all clients ever said."""
        return b"".join(wire.heard for wire in self.wires)

    def environment(self, **overrides: str | None) -> dict[str, str]:
        """The bridge's settings that lead here; None leaves one out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        settings: dict[str, str | None] = {
            "XMPP_SERVICE": f"xmpp{'s' * self.direct_tls}://{host}:{self.port}",
            "XMPP_DOMAIN": DOMAIN,
            "XMPP_USERNAME": USERNAME,
            "XMPP_PASSWORD": PASSWORD,
            "MUC_ROOM": ROOM,
            "MCP_BOT_NICKNAME": NICKNAME,
            "XMPP_ALLOW_PLAINTEXT": None if self._context else "1",
        }
        return {name: value for name, value in (settings | overrides).items() if value is not None}

    def newest(self, version: ssl.TLSVersion) -> None:
        """Speak this version of TLS at most."""
        assert self._context is not None
        self._context.maximum_version = version

    async def connections(self, count: int, seconds: float = STEP_SECONDS) -> None:
        """Return once so many have come."""
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: len(self.wires) >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._converse, self.host, 0, ssl=self._context if self.direct_tls else None
        )
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        assert self._server is not None
        self._server.close()
        for wire in self.wires:
            wire.abort()
        conversations = list(self._conversations)
        for each in conversations:
            each.cancel()
        outcomes = await asyncio.gather(*conversations, return_exceptions=True)
        await self._server.wait_closed()
        if error is None:
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        wire = Wire(reader, writer, self._context, self._certificate)
        script = self._scripts[min(len(self.wires), len(self._scripts) - 1)]
        self.wires.append(wire)
        async with self._arrived:
            self._arrived.notify_all()
        conversation = asyncio.create_task(self._play(script, wire))
        self._conversations.add(conversation)
        with suppress(asyncio.CancelledError):
            await asyncio.wait((conversation,))

    async def _play(self, script: Script, wire: Wire) -> None:
        try:
            await script(wire)
        except ClientGoneError:
            pass
        except (ConnectionError, ssl.SSLError):
            pass  # the client gave the handshake up
        finally:
            wire.abort()
