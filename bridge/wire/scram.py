"""The client's side of SCRAM (RFC 5802, RFC 7677), and the proofs that both sides compute. Pure.

slixmpp's implementation derives the key on the event loop, with no limit on the iterations, and
with a nonce from `random`. Here the caller calls `final` in a thread, and gives the nonce.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.wire.errors import WireError

MAX_ITERATIONS = 1_000_000
"""The most iterations that a server may ask for: 1,000,000 take about a second."""

LEAST_UNTRUSTED_ITERATIONS = 4096
"""The least iterations that a server may ask for if its certificate was not checked (RFC 7677,
section 4). An impostor could cheaply guess the password from a proof with fewer iterations."""

HASHES = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
"""The supported mechanisms, best first, and their hash functions."""


class ScramError(WireError):
    """The server broke the protocol, or failed to prove itself."""


@dataclass(frozen=True)
class ChannelBinding:
    """Data that ties the login to one TLS connection, so that an attacker cannot relay it."""

    type: str
    """As RFC 5929 names it."""
    data: bytes


class ScramClient:
    """One login: call `first`, `challenge`, `final`, `verify`, in this order.

    A `-PLUS` mechanism needs a `binding`. Without a binding, `could_bind` tells the server that we
    support channel binding, but have seen no offer of it. If the server did offer it, the server
    then detects the downgrade.
    """

    def __init__(
        self,
        mechanism: str,
        username: str,
        nonce: str,
        binding: ChannelBinding | None = None,
        *,
        could_bind: bool = False,
        least_iterations: int = 1,
    ) -> None:
        self._hash = HASHES[mechanism.removesuffix("-PLUS")]
        self._nonce = nonce
        self._least_iterations = least_iterations
        self.flag = "p" if binding else "y" if could_bind else "n"
        """The client's flag for channel binding (RFC 5802, section 7)."""
        self._header = (f"p={binding.type}" if binding else self.flag) + ",,"
        self._bound = self._header.encode() + (binding.data if binding else b"")
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._server_first = ""
        self._server_nonce = ""
        self.salt = b""
        """The salt with which the server wants the password hashed; empty before `challenge`."""
        self.iterations = 0
        """How often the server wants the password hashed; 0 before `challenge`."""
        self.offer_hash = b""
        """The server's hash of its offer (XEP-0474); empty before `challenge`, and if the server
        sent none."""
        self._signature = b""

    def first(self) -> str:
        """Return the client's first message, without an authorization identity."""
        return f"{self._header}{self._first_bare}"

    def challenge(self, message: str) -> None:
        """Read the server's first message; raises `ScramError`."""
        fields = _fields(message)
        if "m" in fields:
            raise ScramError("it asks for an extension that is not known")
        self._server_nonce = fields.get("r", "")
        if not self._server_nonce.startswith(self._nonce) or self._server_nonce == self._nonce:
            raise ScramError("its nonce does not continue ours")
        iterations = fields.get("i", "")
        if not (iterations.isascii() and iterations.isdigit()) or len(iterations) > 10:
            raise ScramError("its iteration count is no number")
        self.iterations = int(iterations)
        if not self._least_iterations <= self.iterations <= MAX_ITERATIONS:
            raise ScramError(
                f"it wants {self.iterations} iterations; the least is {self._least_iterations}, "
                f"the most is {MAX_ITERATIONS}"
            )
        self.salt = _decode(fields.get("s", ""))
        if not self.salt:
            raise ScramError("it gives no salt")
        self.offer_hash = _decode(fields.get("h", ""))
        self._server_first = message

    def was_offered(self, mechanisms: Sequence[str], bindings: Sequence[str]) -> bool:
        """Whether the server has offered just these mechanisms and channel bindings (XEP-0474).

        True if the server has sent no hash of its offer. Versions before 0.4 of the standard have
        other delimiters. No name may contain these either.
        """
        for between, after in (("\x1e", "\x1f"), (",", "|")):
            offer = between.join(sorted(mechanisms))
            offer += after + between.join(sorted(bindings)) if bindings else ""
            if hashlib.new(self._hash, offer.encode()).digest() == self.offer_hash:
                return True
        return not self.offer_hash

    def final(self, password: str) -> str:
        """Return the client's final message, with the proof.

        This takes up to a second, for the salted password (RFC 5802, section 3, `Hi`). The GIL is
        released meanwhile.
        """
        salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), self.salt, self.iterations)
        without_proof = f"c={b64encode(self._bound).decode()},r={self._server_nonce}"
        auth_message = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        proof, self._signature = proofs(self._hash, salted, auth_message)
        return f"{without_proof},p={b64encode(proof).decode()}"

    def verify(self, message: str) -> None:
        """Check the proof in the server's final message; raises `ScramError` if it is wrong."""
        verifier = _fields(message).get("v")
        if not self._signature or verifier is None:
            raise ScramError("it skipped its own proof")
        if not hmac.compare_digest(_decode(verifier), self._signature):
            raise ScramError("its signature is wrong")


def proofs(digest: str, salted_password: bytes, auth_message: bytes) -> tuple[bytes, bytes]:
    """Return the client's proof and the server's signature (RFC 5802, section 3)."""
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    signature = hmac.digest(stored_key, auth_message, digest)
    proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    return proof, hmac.digest(server_key, auth_message, digest)


def _fields(message: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in message.split(","):
        name, separator, value = part.partition("=")
        if not separator or len(name) != 1:
            raise ScramError("its message is not made of fields")
        if name in fields:  # two readers could use different values
            raise ScramError("its message says something twice")
        fields[name] = value
    return fields


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ScramError("its message is not Base64") from error
