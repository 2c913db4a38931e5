"""The sandbox with a certificate: what it offers, to whom, and that clients get in."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.sandbox.certificate import self_signed
from bridge.sandbox.server import HOST, Sandbox
from bridge.sandbox.stanza import DOMAIN
from bridge.sandbox.stream import Stream
from bridge.settings import values
from tests.e2e.watching import Watching, run
from tests.sandbox.wire import HEADER, LIMIT, Wire, element, logged_in

STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"


@asynccontextmanager
async def secured(sandbox: Sandbox, trusted: Path) -> AsyncIterator[Wire]:
    """A connection on which TLS has begun, with the certificate checked."""
    reader, writer = await asyncio.open_connection(HOST, sandbox.port)
    wire = Wire(reader, writer)
    wire.send(HEADER)
    await wire.until("</stream:features>")
    wire.send(STARTTLS)
    await wire.until("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
    await writer.start_tls(ssl.create_default_context(cafile=trusted), server_hostname=DOMAIN)
    wire.send(HEADER)
    try:
        yield wire
    finally:
        writer.transport.abort()


async def test_tls_is_required_and_three_mechanisms_are_offered_under_it() -> None:
    with self_signed() as identity:
        async with Sandbox(identity=identity) as sandbox:
            plain = element("auth", f"\0DEBUG\0{sandbox.password}", " mechanism='PLAIN'")
            async with Wire.to(sandbox) as wire:
                wire.send(HEADER + plain)
                assert "<required/>" in (heard := await wire.rest())
                assert "mechanism" not in heard
                assert "<policy-violation " in heard
            async with secured(sandbox, identity.path) as wire:
                offered = await wire.until("</stream:features>")
                wire.send(plain)
                await wire.until("<success")
    assert [
        name for name in ("SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN") if f">{name}<" in offered
    ] == ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]


@pytest.mark.parametrize("domain", [DOMAIN, "ü" * 57, ".".join(["ü" * 50] * 4), "[::1]"])
def test_a_certificate_is_made_for_every_domain_that_the_settings_take(domain: str) -> None:
    with self_signed(values.domain(domain), "sandbox") as identity:
        assert identity.path.exists()


def test_the_files_are_gone_at_the_end_and_only_for_their_owner_before() -> None:
    with self_signed() as identity:
        assert identity.path.stat().st_mode & 0o777 == 0o600
        assert b"PRIVATE" not in identity.path.read_bytes()
    assert not identity.path.exists()


async def test_what_each_client_sends_and_gets_is_observed() -> None:
    seen: list[tuple[str, bool, str]] = []

    def observe(stream: Stream, sent: bool, xml: str) -> None:
        seen.append((stream.jid.partition("/")[0], sent, xml))

    async with Sandbox(observe=observe) as sandbox, logged_in(sandbox) as wire:
        wire.send("<message to='nobody@localhost' id='m1'/></stream:stream>")
        await wire.rest()
    assert ("debug@localhost", True, "<message to='nobody@localhost' id='m1'/>") in seen
    assert any(not sent and "id='m1'" in xml and "error" in xml for _, sent, xml in seen)
    assert ("debug@localhost", True, "</stream:stream>") in seen


async def test_the_settings_that_the_command_prints_lead_a_check_in_by_tls(tmp_path: Path) -> None:
    async with Watching(tmp_path, {}, "--tls", command="sandbox") as sandbox:
        await sandbox.shows("XMPP_TLS_CA_FILE=")
        await sandbox.shows("MUC_ROOM=")
        printed = dict(line.split("=", 1) for line in sandbox.out.splitlines())
        assert "XMPP_ALLOW_PLAINTEXT" not in printed
        code, out, err = await run(tmp_path, printed, "check")
    assert (code, err) == (0, "")
    assert "TLSv1.3" in out


async def test_it_ends_while_a_client_has_begun_tls_and_says_no_more() -> None:
    with self_signed() as identity:
        async with Sandbox(identity=identity) as sandbox, Wire.to(sandbox) as wire:
            wire.send(HEADER + STARTTLS)
            await wire.until("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            async with asyncio.timeout(LIMIT):
                await sandbox.__aexit__()
