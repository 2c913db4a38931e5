"""TLS and logins bound to it. What real servers show of this stands in `tests/e2e/test_faults.py`;
here is what takes a server that lies, or one that is set up oddly."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    Scram,
    Script,
    ScriptedServer,
    Wire,
    said,
)
from tests.faults.test_hostile_server import assert_no_password
from tests.servers.certificates import Authority, Certificate
from tests.servers.ejabberd import running_ejabberd
from tests.servers.process import ServerProcess
from tests.servers.prosody import running_prosody

AUTH = b"<auth"
PLUS = Scram(
    ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), bindings=("tls-exporter", "tls-server-end-point")
)


def trusted(authority: Authority) -> dict[str, str | None]:
    return {"XMPP_TLS_CA_FILE": str(authority.ca_file)}


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_a_certificate_of_a_strange_authority_is_refused_until_that_is_trusted(
    direct_tls: bool, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    async with ScriptedServer(certificate=stranger.issue(DOMAIN), direct_tls=direct_tls) as server:
        async with BridgeProcess(tmp_path / "refused", server.environment()) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "certificate-verify-failed"
            assert "cannot be trusted" in status["lastError"]["message"]
            assert "XMPP_TLS_CA_FILE" in status["lastError"]["hint"]
            assert "nextAttemptAt" in status
        assert AUTH not in server.heard
        async with BridgeProcess(
            tmp_path / "trusted", server.environment(**trusted(stranger))
        ) as bridge:
            assert (await bridge.joined())["tls"]["verified"] is True


REFUSED = {
    "for the host and not the domain": (lambda it: it.issue("127.0.0.1"), "XMPP_DOMAIN"),
    "expired": (lambda it: it.issue_expired(DOMAIN), "Renew the server's"),
}
"""Certificates that are not what they ought to be, and what the hint must name."""


@pytest.mark.parametrize(("issue", "hint"), REFUSED.values(), ids=REFUSED)
async def test_a_certificate_that_cannot_be_trusted_is_refused(
    issue: Callable[[Authority], Certificate],
    hint: str,
    authority: Authority,
    tmp_path: Path,
) -> None:
    async with ScriptedServer(certificate=issue(authority)) as server:
        async with BridgeProcess(tmp_path, server.environment(**trusted(authority))) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "certificate-verify-failed"
            assert hint in status["lastError"]["hint"]
        assert AUTH not in server.heard


async def test_a_certificate_for_the_domain_and_not_the_host_will_do(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    async with ScriptedServer(certificate=certificate) as server:
        settings = server.environment(**trusted(authority))
        assert "127.0.0.1" in settings["XMPP_SERVICE"]
        async with BridgeProcess(tmp_path, settings) as bridge:
            tls = (await bridge.joined())["tls"]
            assert (tls["version"], tls["verified"]) == ("TLSv1.3", True)


async def test_checks_that_are_off_let_scram_in_and_are_shouted_about(
    certificate: Certificate, tmp_path: Path
) -> None:
    both = Scram(("PLAIN", "SCRAM-SHA-256"))
    script = replace(HONEST, authenticate=both)
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = server.environment(NODE_TLS_REJECT_UNAUTHORIZED="0")
        async with BridgeProcess(tmp_path / "home", settings) as bridge:
            status = await bridge.joined()
            assert status["sasl"] == "SCRAM-SHA-256"
            assert status["tls"]["verified"] is False
            assert any("NODE_TLS_REJECT_UNAUTHORIZED" in one for one in status["warnings"])
        assert "[Server] WARNING: NODE_TLS_REJECT_UNAUTHORIZED" in bridge.stderr
        assert_no_password(server.heard)


# STARTTLS.

INJECTED = [
    f"<stream:features>{scripted.mechanisms('PLAIN')}</stream:features>",
    scripted.sasl("success") + said("Eve", "FORGED"),
    "<message><body>" + "x" * 20_000,
    said("Eve", "FORGED") * 300,
]


@pytest.mark.parametrize("injected", INJECTED, ids=["features", "success", "a torn one", "many"])
async def test_what_is_slipped_in_before_the_handshake_is_forgotten(
    injected: str, authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    async def secure(wire: Wire) -> None:
        await wire.open(scripted.STARTTLS)
        await wire.element("starttls")
        wire.send(scripted.PROCEED + injected)
        await wire.start_tls()

    script = replace(HONEST, secure=secure)
    async with ScriptedServer(script, certificate=certificate) as server:
        async with BridgeProcess(tmp_path, server.environment(**trusted(authority))) as bridge:
            status = await bridge.joined()
            assert (status["sasl"], status["lastIncoming"]) == ("SCRAM-SHA-256", None)
            assert (await bridge.bare("xmppSend", message="hello"))["sent"]
        assert len(server.wires) == 1
        assert_no_password(server.heard)
    assert "FORGED" not in bridge.stderr


async def test_words_in_the_place_of_a_handshake_are_told(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    async def secure(wire: Wire) -> None:
        await wire.open(scripted.STARTTLS)
        await wire.element("starttls")
        wire.send(scripted.PROCEED)
        await wire.hello()
        wire.send("I would rather not. " * 10)
        await wire.gone()

    lie = replace(HONEST, secure=secure)
    async with (
        ScriptedServer(lie, HONEST, certificate=certificate) as server,
        BridgeProcess(tmp_path, server.environment(**trusted(authority))) as bridge,
    ):
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] == "tls-handshake-failed"
        # It is no direct TLS that was asked for: nothing is wrong with XMPP_SERVICE.
        assert "xmpps" not in status["lastError"]["hint"]
        await bridge.joined()


# Channel binding.


@pytest.mark.parametrize("program", ["prosody", "ejabberd"])
async def test_a_login_to_a_real_server_is_bound_to_tls_1_2(
    program: str, request: pytest.FixtureRequest, authority: Authority, tmp_path: Path
) -> None:
    request.getfixturevalue(program)  # for its verdict where the program is missing
    running = {"prosody": running_prosody, "ejabberd": running_ejabberd}[program]
    file, old, new = {
        "prosody": ("prosody.cfg.lua", "ssl = {", 'ssl = { protocol = "tlsv1_2",'),
        "ejabberd": ("ejabberd.yml", '"no_tlsv1_1"]', '"no_tlsv1_1", "no_tlsv1_3"]'),
    }[program]
    with running(tmp_path / "server", authority) as process:
        configuration = process.directory / file
        text = configuration.read_text(encoding="utf-8")
        assert old in text
        configuration.write_text(text.replace(old, new), encoding="utf-8")
        process.kill()
        await asyncio.to_thread(process.start)
        async with BridgeProcess(tmp_path / "home", process.server.environment()) as bridge:
            status = await bridge.joined()
            assert status["tls"]["version"] == "TLSv1.2"
            assert status["sasl"].endswith("-PLUS")


async def bound_login(
    scram: Scram,
    authority: Authority,
    certificate: Certificate,
    home: Path,
    script: Script = HONEST,
) -> tuple[dict[str, object], str]:
    """Return the status once decided, and the first message of the client's SCRAM."""
    flags: list[str] = []

    async def watched(wire: Wire) -> None:
        try:
            await scram(wire)
        finally:
            flags.append(wire.first)

    script = replace(script, authenticate=watched)
    async with (
        ScriptedServer(script, certificate=certificate) as server,
        BridgeProcess(home, server.environment(**trusted(authority))) as bridge,
    ):
        status = await bridge.until(lambda it: it["connected"] or it["phase"] == "failed")
    return status, flags[0]


async def test_an_offer_that_somebody_cut_out_is_noticed_by_the_server(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    scram = Scram(hides_plus=True)
    status, first = await bound_login(scram, authority, certificate, tmp_path)
    assert first.startswith("y,,")
    error = status["lastError"]
    assert isinstance(error, dict)
    assert (status["phase"], error["condition"]) == ("failed", "malformed-request")


async def test_a_login_passed_on_by_somebody_in_between_is_refused(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    """The one in between has a good certificate; the server behind knows that it is not its own."""

    async def behind(wire: Wire) -> None:
        await scripted.secure(wire)
        wire.certificate = authority.issue(DOMAIN)

    status, first = await bound_login(
        PLUS, authority, certificate, tmp_path, script=replace(HONEST, secure=behind)
    )
    assert first.startswith("p=tls-server-end-point,,")
    error = status["lastError"]
    assert isinstance(error, dict)
    assert (status["connected"], error["condition"]) == (False, "not-authorized")


async def test_with_checks_off_a_login_to_ejabberd_is_bound_under_tls_1_3(
    ejabberd_process: ServerProcess, tmp_path: Path
) -> None:
    settings = ejabberd_process.server.environment(
        NODE_TLS_REJECT_UNAUTHORIZED="0", XMPP_TLS_CA_FILE=None
    )
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.joined()
        assert (status["tls"]["version"], status["tls"]["verified"]) == ("TLSv1.3", False)
        assert status["sasl"].endswith("-PLUS")


# Addresses.


def _listens_on(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


needs_ipv6 = pytest.mark.skipif(not _listens_on("::1"), reason="this machine has no ::1")


@needs_ipv6
async def test_an_ipv6_address_in_brackets_is_reached(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    async with ScriptedServer(certificate=certificate, host="::1") as server:
        settings = server.environment(**trusted(authority))
        assert settings["XMPP_SERVICE"].startswith("xmpp://[::1]:")
        async with BridgeProcess(tmp_path, settings) as bridge:
            status = await bridge.joined()
            assert status["service"] == settings["XMPP_SERVICE"]
            assert status["tls"]["verified"] is True
