"""One client's connection: stream, SASL and resource binding (RFC 6120 sections 4, 6 and 7)."""

import asyncio
import base64
import secrets
from collections.abc import Mapping
from typing import Protocol
from xml.etree.ElementTree import Element

from bridge.sandbox.parser import StreamClosed, StreamFault, StreamOpened, StreamParser
from bridge.sandbox.scram import (
    MECHANISM,
    AuthenticationError,
    Challenge,
    Credentials,
    challenge,
    decode,
)
from bridge.sandbox.stanza import IQ, MESSAGE, PRESENCE, STREAMS, bounce, build, render

BUFFER_LIMIT = 4 * 1024 * 1024
"""Bytes that may wait for a client that does not read, before it is cut off."""

ATTEMPT_LIMIT = 5
"""Failed logins on one connection (RFC 6120 section 6.4.5 asks for two to five)."""

CLOSING_TIME = 0.5
"""Seconds that a client has to close its side once the stream has ended."""

RESOURCE_LIMIT = 1023
"""Bytes of UTF-8 in a resourcepart (RFC 7622 section 3.4)."""

SASL = "{urn:ietf:params:xml:ns:xmpp-sasl}"
BIND = "{urn:ietf:params:xml:ns:xmpp-bind}"
STREAM_ERRORS = "{urn:ietf:params:xml:ns:xmpp-streams}"


class Host(Protocol):
    """What a stream asks of the server it belongs to."""

    @property
    def domain(self) -> str:
        """The only domain that is served."""

    @property
    def credentials(self) -> Mapping[str, Credentials]:
        """The accounts that there are."""

    def opened(self, stream: "Stream") -> None:
        """Take note of a connection."""

    def bound(self, stream: "Stream") -> None:
        """Take note of the stream's JID, which another one may have held until now."""

    def received(self, stream: "Stream", stanza: Element) -> None:
        """Act on a stanza that a bound stream's client sent."""

    def ended(self, stream: "Stream") -> None:
        """Take note that nothing more is taken from or sent to the client."""

    def lost(self, stream: "Stream") -> None:
        """Take note that the connection is gone."""


class Stream(asyncio.Protocol):
    """A connection and how far it has come; `jid` is empty until a resource is bound."""

    _transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self.jid = ""
        self._host = host
        self._parser = StreamParser()
        self._username = ""
        self._challenge: Challenge | None = None
        self._awaits_client_first = False
        self._failed_attempts = 0
        self._header_sent = False
        self._ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; the client speaks first."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session, however that came."""
        if self._ending is not None:
            self._ending.cancel()
        self._host.lost(self)

    def data_received(self, data: bytes) -> None:
        """Act on each thing that has become complete, until the stream ends or restarts."""
        if self._ending is not None:
            return
        parser = self._parser
        for parsed in parser.feed(data):
            match parsed:
                case StreamOpened():
                    self._answer_header(parsed)
                case StreamClosed():
                    self.end()
                case StreamFault(condition):
                    self.fail(condition)
                case _ if not self._username:
                    self._authenticate(parsed)
                case _ if not self.jid:
                    self._bind(parsed)
                case _ if parsed.tag in (IQ, MESSAGE, PRESENCE):
                    self._host.received(self, parsed)
                case _:
                    self.fail("unsupported-stanza-type")
            if self._ending is not None or parser is not self._parser:
                return

    def send(self, stanza: Element) -> None:
        """Send a stanza, or cut off a client that has left too many unread."""
        self._write(render(stanza))

    def fail(self, condition: str) -> None:
        """End the stream with an error (RFC 6120 section 4.9)."""
        if self._ending is None:
            self._write_header()
            error = build(STREAMS + "error", {}, build(STREAM_ERRORS + condition))
            self._write(render(error))
            self.end()

    def end(self) -> None:
        """Close our side of the stream, and the connection when the client has closed its own."""
        if self._ending is not None:
            return
        self._write_header()
        self._write("</stream:stream>")
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(CLOSING_TIME, self.abort)
        # Closing at once, with input unread, would reset the connection and so may lose the
        # last words that have just been written.
        if not self._transport.is_closing():
            self._transport.write_eof()
        self._host.ended(self)

    def abort(self) -> None:
        """Drop the connection with whatever is still unsent."""
        self._transport.abort()

    def _write(self, xml: str) -> None:
        if self._ending is not None or self._transport.is_closing():
            return
        self._transport.write(xml.encode())
        if self._transport.get_write_buffer_size() > BUFFER_LIMIT:
            self.abort()

    def _write_header(self) -> None:
        if not self._header_sent:
            self._header_sent = True
            self._write(
                "<?xml version='1.0'?><stream:stream xmlns='jabber:client'"
                f" xmlns:stream='{STREAMS[1:-1]}' from='{self._host.domain}'"
                f" id='{secrets.token_hex(8)}' version='1.0' xml:lang='en'>"
            )

    def _answer_header(self, header: StreamOpened) -> None:
        if header.tag != STREAMS + "stream":
            self.fail("invalid-namespace" if header.tag.endswith("}stream") else "bad-format")
        elif header.attributes.get("to", "").lower() != self._host.domain:
            self.fail("host-unknown")
        elif not header.attributes.get("version", "").startswith("1."):
            self.fail("unsupported-version")
        else:
            self._write_header()
            feature = build(BIND + "bind")
            if not self._username:
                mechanism = build(SASL + "mechanism", text=MECHANISM)
                feature = build(SASL + "mechanisms", {}, mechanism)
            self._write(render(build(STREAMS + "features", {}, feature)))

    def _authenticate(self, element: Element) -> None:
        """Take one step of the SASL negotiation (RFC 6120 section 6.4)."""
        try:
            if element.tag == SASL + "auth":
                self._challenge = None
                if element.get("mechanism") != MECHANISM:
                    raise AuthenticationError("invalid-mechanism")
                self._awaits_client_first = not element.text
                if self._awaits_client_first:
                    self.send(build(SASL + "challenge"))
                else:
                    self._challenge_client(decode(element.text or ""))
            elif element.tag == SASL + "response" and self._challenge is not None:
                self._admit(self._challenge, decode(element.text or ""))
            elif element.tag == SASL + "response" and self._awaits_client_first:
                self._challenge_client(decode(element.text or ""))
            elif element.tag == SASL + "response":
                raise AuthenticationError("malformed-request")
            elif element.tag == SASL + "abort":
                raise AuthenticationError("aborted")
            else:
                self.fail("not-authorized")
        except AuthenticationError as refusal:
            self._challenge, self._awaits_client_first = None, False
            self._failed_attempts += 1
            self.send(build(SASL + "failure", {}, build(SASL + refusal.condition)))
            if self._failed_attempts >= ATTEMPT_LIMIT:
                self.fail("policy-violation")

    def _challenge_client(self, client_first: bytes) -> None:
        self._awaits_client_first = False
        nonce = secrets.token_urlsafe(18)
        self._challenge = challenge(client_first, self._host.credentials, nonce)
        self.send(build(SASL + "challenge", text=_encoded(self._challenge.message)))

    def _admit(self, proven: Challenge, client_final: bytes) -> None:
        self.send(build(SASL + "success", text=_encoded(proven.verify(client_final))))
        self._username = proven.username
        # RFC 6120 section 6.4.6: what follows is a new stream on the old connection.
        self._parser, self._header_sent, self._challenge = StreamParser(), False, None

    def _bind(self, iq: Element) -> None:
        """Give the client its full JID (RFC 6120 section 7.6)."""
        request = iq.find(BIND + "bind")
        if iq.tag != IQ or iq.get("type") != "set" or request is None or not iq.get("id"):
            self.fail("not-authorized")
            return
        resource = request.findtext(BIND + "resource") or secrets.token_hex(8)
        if len(resource.encode()) > RESOURCE_LIMIT:
            for refusal in bounce(iq, "bad-request"):
                self.send(refusal)
            return
        self.jid = f"{self._username}@{self._host.domain}/{resource}"
        self._host.bound(self)
        payload = build(BIND + "bind", {}, build(BIND + "jid", text=self.jid))
        self.send(build(IQ, {"type": "result", "id": iq.get("id", "")}, payload))


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
