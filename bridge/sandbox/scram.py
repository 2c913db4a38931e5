"""The server's side of SASL SCRAM-SHA-256 (RFC 5802, RFC 7677): bytes in, bytes out."""

import base64
import binascii
import hashlib
import hmac
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

MECHANISM = "SCRAM-SHA-256"
"""Name under which the mechanism is offered (RFC 7677 section 3)."""

ITERATIONS = 4096
"""Rounds of PBKDF2, the least that RFC 7677 section 4 allows: the passwords are random."""


class AuthenticationError(Exception):
    """The client's fault; `condition` is a SASL failure of RFC 6120 section 6.5."""

    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition


@dataclass(frozen=True)
class Credentials:
    """What the server keeps instead of a password (RFC 5802 section 3)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def derive(cls, password: str, salt: bytes) -> Self:
        """Turn a password into what can check it but cannot be used in its place."""
        # Clients prepare with SASLprep; NFKC is the part of it that changes real passwords.
        prepared = unicodedata.normalize("NFKC", password).encode()
        salted = hashlib.pbkdf2_hmac("sha256", prepared, salt, ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        return cls(salt, hashlib.sha256(client_key).digest(), server_key)


@dataclass(frozen=True)
class Challenge:
    """An exchange half done: the server has spoken first, the client's proof is awaited."""

    username: str
    credentials: Credentials
    message: bytes
    """The server-first-message, to be sent."""
    nonce: bytes
    gs2_header: bytes
    client_first_bare: bytes

    def verify(self, client_final: bytes) -> bytes:
        """Check the proof and give the server-final-message, which proves the server in turn."""
        unproven, separator, proof_text = client_final.rpartition(b",p=")
        attributes = unproven.split(b",")
        if not separator or len(attributes) < 2:
            raise AuthenticationError("malformed-request")
        proof = decode(proof_text)
        if attributes[0] != b"c=" + base64.b64encode(self.gs2_header):
            raise AuthenticationError("not-authorized")
        if attributes[1] != b"r=" + self.nonce:
            raise AuthenticationError("not-authorized")
        signed = b",".join((self.client_first_bare, self.message, unproven))
        signature = hmac.digest(self.credentials.stored_key, signed, "sha256")
        if len(proof) != len(signature):
            raise AuthenticationError("not-authorized")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(
            hashlib.sha256(client_key).digest(), self.credentials.stored_key
        ):
            raise AuthenticationError("not-authorized")
        return b"v=" + base64.b64encode(hmac.digest(self.credentials.server_key, signed, "sha256"))


def challenge(
    client_first: bytes, accounts: Mapping[str, Credentials], server_nonce: str
) -> Challenge:
    """Answer the client-first-message (RFC 5802 section 5.1)."""
    match client_first.split(b",", 3):
        # "y" says that the client could bind to a TLS channel: here there is none to bind to.
        case [b"n" | b"y" as flag, authzid, user, nonce] if (
            user.startswith(b"n=") and nonce.startswith(b"r=") and len(nonce) > len(b"r=")
        ):
            username = saslname(user.removeprefix(b"n="))
        case _:
            raise AuthenticationError("malformed-request")
    if authzid and saslname(authzid.removeprefix(b"a=")).partition("@")[0] != username:
        raise AuthenticationError("invalid-authzid")
    username = username.lower()
    if username not in accounts:
        raise AuthenticationError("not-authorized")
    credentials = accounts[username]
    both = nonce.removeprefix(b"r=").partition(b",")[0] + server_nonce.encode()
    message = b"r=%b,s=%b,i=%d" % (both, base64.b64encode(credentials.salt), ITERATIONS)
    header = b"%b,%b," % (flag, authzid)
    return Challenge(
        username, credentials, message, both, header, client_first.removeprefix(header)
    )


def saslname(encoded: bytes) -> str:
    """Undo the escapes of a saslname (RFC 5802 section 5.1)."""
    try:
        name = encoded.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("malformed-request") from None
    plain = name.replace("=2C", "").replace("=3D", "")
    if "=" in plain or not name:
        raise AuthenticationError("malformed-request")
    return name.replace("=2C", ",").replace("=3D", "=")


def decode(text: bytes | str) -> bytes:
    """Decode base64 as strictly as RFC 6120 section 6.4.2 asks."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationError("incorrect-encoding") from None
