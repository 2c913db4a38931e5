"""The client's side of SCRAM as values (RFC 5802, RFC 7677). Pure.

slixmpp's own derives the key in Python, on the event loop, with no bound on the iterations and
a nonce from `random`; here the caller derives it (`Derivation.key`), in a thread, and gives the
nonce.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass

MAX_ITERATIONS = 1_000_000
"""Beyond this a server burns our processor rather than guarding its passwords."""

LEAST_UNTRUSTED_ITERATIONS = 4096
"""Asked for by RFC 7677, section 4. With fewer, whoever poses as a server that is not known to be
genuine gets a proof from which the password is cheaply guessed."""

HASHES = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
"""The mechanisms spoken here, best first, and their hash functions."""


class ScramError(ValueError):
    """The server broke the protocol, or failed to prove itself."""


@dataclass(frozen=True)
class Derivation:
    """What the salted password is made from (RFC 5802, section 3, `Hi`)."""

    hash_name: str
    salt: bytes
    iterations: int

    def key(self, password: str) -> bytes:
        """Derive it: takes up to a second at the most iterations, and lets go of the GIL."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), self.salt, self.iterations)


@dataclass(frozen=True)
class ChannelBinding:
    """What ties the login to this TLS connection, so that nobody in between can pass it on."""

    type: str
    """As RFC 5929 names it."""
    data: bytes


class ScramClient:
    """One login. `first`, `challenge`, `final`, `verify`, in this order.

    `binding` is what a `-PLUS` mechanism binds to. `could_bind` says, without one, that we could
    have and were not offered to: a server that did offer then knows that somebody cut it out.
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
        flag = "y" if could_bind else "n"
        self._header = (f"p={binding.type}" if binding else flag) + ",,"
        self._bound = self._header.encode() + (binding.data if binding else b"")
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._server_first = ""
        self._server_nonce = ""
        self._signature = b""

    def first(self) -> str:
        """The client's first message; no other identity is asked for."""
        return f"{self._header}{self._first_bare}"

    def challenge(self, message: str) -> Derivation:
        """Read the server's first message; raises `ScramError`."""
        fields = _fields(message)
        if "m" in fields:
            raise ScramError("it asks for an extension that is not known")
        self._server_nonce = fields.get("r", "")
        if not self._server_nonce.startswith(self._nonce) or len(self._server_nonce) <= len(
            self._nonce
        ):
            raise ScramError("its nonce does not continue ours")
        iterations = fields.get("i", "")
        if not (iterations.isascii() and iterations.isdigit()) or len(iterations) > 10:
            raise ScramError("its iteration count is no number")
        if not 1 <= int(iterations) <= MAX_ITERATIONS:
            raise ScramError(f"it wants {int(iterations)} iterations; the most is {MAX_ITERATIONS}")
        if int(iterations) < self._least_iterations:
            raise ScramError(
                f"it wants {int(iterations)} iterations; the least is {self._least_iterations} "
                "where its certificate was not checked"
            )
        salt = _decode(fields.get("s", ""))
        if not salt:
            raise ScramError("it gives no salt")
        self._server_first = message
        return Derivation(self._hash, salt, int(iterations))

    def final(self, salted_password: bytes) -> str:
        """The client's final message, with the proof."""
        client_key = self._hmac(salted_password, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        without_proof = f"c={b64encode(self._bound).decode()},r={self._server_nonce}"
        auth_message = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        signature = self._hmac(stored_key, auth_message)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        server_key = self._hmac(salted_password, b"Server Key")
        self._signature = self._hmac(server_key, auth_message)
        return f"{without_proof},p={b64encode(proof).decode()}"

    def verify(self, message: str) -> None:
        """Check the server's final message; raises `ScramError` unless it knows the password."""
        verifier = _fields(message).get("v")
        if not self._signature or verifier is None:
            raise ScramError("it skipped its own proof")
        if not hmac.compare_digest(_decode(verifier), self._signature):
            raise ScramError("its signature is wrong")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in message.split(","):
        name, separator, value = part.partition("=")
        if not separator or len(name) != 1:
            raise ScramError("its message is not made of fields")
        if name in fields:  # two readers might each believe another one
            raise ScramError("its message says something twice")
        fields[name] = value
    return fields


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError) as error:
        raise ScramError("its message is not Base64") from error
