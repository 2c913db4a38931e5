"""The client's login to tap itself, with the account's password from the settings. No I/O."""

from base64 import b64encode
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

from bridge.sandbox.scram import AuthenticationError, Exchange, decode, plain
from bridge.wire.names import SASL, local
from bridge.wire.xmlwriter import written

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
"""What a client can log in with, best first, if the server offers it too."""


class ClientLogin:
    """The server's side of SASL towards one client. Passwords are compared in constant time."""

    def __init__(self, username: str, password: str) -> None:
        self._accounts = {username.lower(): password}
        self._exchange: Exchange | None = None
        self._offered: Sequence[str] = ()
        self.secured = False
        """Whether the client speaks TLS with tap; PLAIN is offered only then."""
        self.mechanism = ""
        """The mechanism of the latest attempt."""
        self.flag = ""
        """The flag for channel binding that it had (RFC 5802, section 7); empty without SCRAM."""

    def offer(self, features: Element, offered: Sequence[str]) -> bytes:
        """Add to `features` what tap offers of what the server `offered`; return that as XML."""
        usable = MECHANISMS if self.secured else MECHANISMS[:-1]
        self._offered = [name for name in usable if name in offered]
        mechanisms = SubElement(features, f"{{{SASL}}}mechanisms")
        for name in self._offered:
            SubElement(mechanisms, f"{{{SASL}}}mechanism").text = name
        return written(mechanisms).encode()

    def receive(self, element: Element) -> tuple[bytes, bool]:
        """Return the answer to what the client sends, and whether it has proved the password.

        Then the answer is `<success/>`, for when tap has logged in to the server.
        """
        try:
            match local(element.tag), self._exchange:
                case "auth", _:
                    return self._begin(element)
                case "response", Exchange() as exchange:
                    self._exchange = None
                    return _element("success", exchange.verify(decode(element.text or ""))), True
                case "abort", _:
                    raise AuthenticationError("aborted")
            raise AuthenticationError("malformed-request")
        except AuthenticationError as refusal:
            self._exchange = None
            return f"<failure xmlns='{SASL}'><{refusal}/></failure>".encode(), False

    def _begin(self, auth: Element) -> tuple[bytes, bool]:
        self.mechanism, self.flag, self._exchange = auth.get("mechanism", ""), "", None
        if self.mechanism not in self._offered:
            raise AuthenticationError("invalid-mechanism")
        first = decode(auth.text or "")
        if self.mechanism == "PLAIN":
            plain(first, self._accounts)
            return _element("success", b""), True
        self.flag = first[:1].decode("ascii", "replace")
        self._exchange = Exchange(first, self._accounts, self.mechanism)
        return _element("challenge", self._exchange.challenge), False


def _element(name: str, content: bytes) -> bytes:
    return f"<{name} xmlns='{SASL}'>{b64encode(content).decode()}</{name}>".encode()
