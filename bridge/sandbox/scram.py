"""The server's side of SASL: SCRAM (RFC 5802, RFC 7677) and PLAIN (RFC 4616), without I/O."""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from xml.etree.ElementTree import Element

from bridge.sandbox.stanza import SandboxError, tag
from bridge.wire.names import SASL, local
from bridge.wire.scram import HASHES, proofs

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
"""The mechanisms under TLS, best first."""

LOGIN = frozenset(f"{{{SASL}}}{name}" for name in ("auth", "response", "abort"))
"""The tags of what a client sends to log in."""

ITERATIONS = 4096
"""Rounds of PBKDF2: the least that RFC 7677 section 4 allows, since the password is random."""

CLIENT_FIRST = re.compile(rb"([ny],(?:a=[^,]+)?,)(n=([^,]+),r=([^,]+).*)")
CLIENT_FINAL = re.compile(rb"(c=([^,]+),r=([^,]+).*),p=([^,]*)")
"""The messages of the client (RFC 5802 section 7). The authorization identity (`a=`) is ignored."""


class AuthenticationError(SandboxError):
    """The client failed to log in; the text is a SASL failure of RFC 6120 section 6.5."""


class SaslLogin:
    """The login of one client. Passwords are compared in constant time."""

    def __init__(
        self, accounts: Callable[[], Mapping[str, str]], offered: Sequence[str] = MECHANISMS
    ) -> None:
        """`accounts` is called at each attempt, and returns names and passwords."""
        self._accounts = accounts
        self._exchange: Exchange | None = None
        self.offered = offered
        self.mechanism = ""
        """The mechanism of the latest attempt."""
        self.flag = ""
        """The flag for channel binding that it had (RFC 5802, section 7); empty without SCRAM."""

    @property
    def feature(self) -> str:
        """The feature that offers the mechanisms, as XML."""
        names = (tag("mechanism", name) for name in self.offered)
        return tag("mechanisms", "".join(names), xmlns=SASL)

    def receive(self, element: Element) -> tuple[str, str]:
        """Return the answer to one of `LOGIN`, and the account whose password is proved by it.

        The account is empty unless the answer is `<success/>`.
        """
        exchange, self._exchange = self._exchange, None
        try:
            match local(element.tag), exchange:
                case "auth", _:
                    return self._begin(element)
                case "response", Exchange():
                    proof = exchange.verify(decode(element.text or ""))
                    return _answer("success", proof), exchange.username
                case "abort", _:
                    raise AuthenticationError("aborted")
            raise AuthenticationError("malformed-request")
        except AuthenticationError as refusal:
            return tag("failure", tag(str(refusal)), xmlns=SASL), ""

    def _begin(self, auth: Element) -> tuple[str, str]:
        self.mechanism, self.flag = auth.get("mechanism", ""), ""
        if self.mechanism not in self.offered:
            raise AuthenticationError("invalid-mechanism")
        first = decode(auth.text or "")
        if self.mechanism == "PLAIN":
            return _answer("success", b""), plain(first, self._accounts())
        self.flag = first[:1].decode("ascii", "replace")
        self._exchange = Exchange(first, self._accounts(), self.mechanism)
        return _answer("challenge", self._exchange.challenge), ""


class Exchange:
    """One login: the client is sent `challenge`, and `verify` checks its answer."""

    def __init__(
        self, client_first: bytes, accounts: Mapping[str, str], mechanism: str = "SCRAM-SHA-256"
    ) -> None:
        self._hash = HASHES[mechanism]
        match = CLIENT_FIRST.fullmatch(client_first)
        if match is None:
            raise AuthenticationError("malformed-request")
        self._header, self._first_bare, saslname, nonce = match.groups()
        name = saslname.decode(errors="replace").replace("=2C", ",").replace("=3D", "=")
        self.username = name.lower()  # JIDs that differ only in case are the same (RFC 7622)
        if self.username not in accounts:
            raise AuthenticationError("not-authorized")
        password, salt = accounts[self.username].encode(), secrets.token_bytes(16)
        self._salted = hashlib.pbkdf2_hmac(self._hash, password, salt, ITERATIONS)
        self._nonce = nonce + secrets.token_urlsafe(18).encode()
        self.challenge = b"r=%b,s=%b,i=%d" % (self._nonce, b64encode(salt), ITERATIONS)

    def verify(self, client_final: bytes) -> bytes:
        """Check the client's proof and return the server's (RFC 5802 section 3)."""
        match = CLIENT_FINAL.fullmatch(client_final)
        if match is None:
            raise AuthenticationError("malformed-request")
        unproven, header, nonce, proof = match.groups()
        signed = b",".join((self._first_bare, self.challenge, unproven))
        expected, server_signature = proofs(self._hash, self._salted, signed)
        proven = hmac.compare_digest(decode(proof), expected)
        if not proven or (header, nonce) != (b64encode(self._header), self._nonce):
            raise AuthenticationError("not-authorized")
        return b"v=" + b64encode(server_signature)


def plain(message: bytes, accounts: Mapping[str, str]) -> str:
    """Check a name and a password that came in clear; return the name of the account."""
    parts = message.split(b"\0")
    if len(parts) != len(("authorization identity", "name", "password")):
        raise AuthenticationError("malformed-request")
    username = parts[1].decode(errors="replace").lower()
    if not hmac.compare_digest(accounts.get(username, "").encode(), parts[2]) or not parts[2]:
        raise AuthenticationError("not-authorized")
    return username


def decode(text: bytes | str) -> bytes:
    """Return the bytes of base64, read as strictly as RFC 6120 section 6.4.2 asks."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationError("incorrect-encoding") from None


def _answer(name: str, content: bytes) -> str:
    return tag(name, b64encode(content).decode(), xmlns=SASL)
