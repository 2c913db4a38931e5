"""Certificates for the servers: good ones, and ones that a client must refuse."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

VALID_DAYS = 365
"""trustme's own certificates run to the year 3000, for which ejabberd cannot set its alarm."""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate, as the files that servers read."""

    chain: Path
    key: Path
    combined: Path
    """Key and chain in one file, as ejabberd wants them."""

    @property
    def der(self) -> bytes:
        """The certificate as a server presents it in the handshake."""
        return ssl.PEM_cert_to_DER_cert(self.chain.read_text(encoding="ascii"))


class Authority:
    """A certificate authority of the tests' own; its certificate lies in `ca_file`.

    A second `Authority` issues what somebody who trusts the first must refuse.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._ca = trustme.CA()
        self._issued = 0
        self.ca_file = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca_file)

    def issue(self, *names: str) -> Certificate:
        """A valid certificate for these domains."""
        now = datetime.now(UTC)
        return self._issue(names, now - timedelta(days=1), now + timedelta(days=VALID_DAYS))

    def issue_expired(self, *names: str) -> Certificate:
        """A certificate for these domains that ran out yesterday."""
        now = datetime.now(UTC)
        return self._issue(names, now - timedelta(days=30), now - timedelta(days=1))

    def _issue(self, names: tuple[str, ...], start: datetime, end: datetime) -> Certificate:
        issued = self._ca.issue_cert(*names, not_before=start, not_after=end)
        self._issued += 1
        stem = self._directory / f"server-{self._issued}"
        certificate = Certificate(
            chain=stem.with_suffix(".crt"),
            key=stem.with_suffix(".key"),
            combined=stem.with_suffix(".pem"),
        )
        certificate.chain.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(certificate.key)
        issued.private_key_and_cert_chain_pem.write_to_path(certificate.combined)
        return certificate
