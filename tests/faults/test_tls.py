"""TLS and logins bound to it: what takes a server that lies, or one that is set up oddly.

What real servers show of this stands in `tests/e2e/test_faults.py`.
"""

import re
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.settings.table import Settings
from bridge.xmpp.checks.attempt import look_at_certificate
from bridge.xmpp.link import tls
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import Place
from tests.e2e.bridge_process import BridgeProcess
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scene import Scene
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    USERNAME,
    Scram,
    ScriptedServer,
    Wire,
    said,
    saying,
)
from tests.faults.test_hostile_server import assert_no_password
from tests.servers.certificates import Authority, Certificate
from tests.xmpp.probing import check, detail, failed, settings

AUTH = b"<auth"


STRANGE = {
    "a strange authority's": ("xmpp", "cannot be trusted", "XMPP_TLS_CA_FILE"),
    "a strange authority's, by direct TLS": ("xmpps", "cannot be trusted", "XMPP_TLS_CA_FILE"),
    "for the host and not the domain": ("xmpp", "", "XMPP_DOMAIN"),
    "expired": ("xmpp", "", "Renew the server's"),
}
"""Certificates that are not what they ought to be, and what the message and the hint must name."""


@pytest.mark.parametrize("strange", STRANGE)
async def test_a_certificate_that_cannot_be_trusted_is_refused(
    strange: str, authority: Authority, tmp_path: Path
) -> None:
    scheme, message, hint = STRANGE[strange]
    stranger = Authority(tmp_path)
    certificate = (
        authority.issue_expired(DOMAIN)
        if strange == "expired"
        else authority.issue("127.0.0.1")
        if "host" in strange
        else stranger.issue(DOMAIN)
    )
    direct_tls = scheme == "xmpps"
    async with ScriptedServer(certificate=certificate, direct_tls=direct_tls) as server:
        async with participant_at(server, trusted=authority.ca_file) as eyes:
            fault, changed, _ = await eyes.fault()
            assert (fault.condition, changed.phase) == ("certificate-verify-failed", Phase.FAILED)
            assert message in fault.message
            assert hint in fault.hint
            assert changed.next_attempt_in_ms is not None
        assert AUTH not in server.heard
        if "authority" in strange:  # until that is trusted
            async with participant_at(server, trusted=stranger.ca_file) as eyes:
                await eyes.joined()
                secured = eyes.status().tls
                assert secured is not None
                assert secured.verified


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
            assert any("NODE_TLS_REJECT_UNAUTHORIZED" in each for each in status["warnings"])
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
    injected: str, authority: Authority, certificate: Certificate
) -> None:
    async def secure(wire: Wire) -> None:
        await wire.open(scripted.STARTTLS)
        await wire.element("starttls")
        wire.send(scripted.PROCEED + injected)
        await wire.start_tls()

    script = replace(HONEST, secure=secure)
    async with ScriptedServer(script, certificate=certificate) as server:
        async with participant_at(server, trusted=authority.ca_file) as eyes:
            await eyes.joined()
            await eyes.membership.say("hello", 30)
            status = eyes.status()
            assert status.tls is not None
            assert (status.tls.version, status.tls.verified) == ("TLSv1.3", True)
            assert status.sasl == "SCRAM-SHA-256"
            assert [each.body for each in eyes.messages()] == ["hello"]
        assert len(server.wires) == 1
        assert_no_password(server.heard)


async def test_words_in_the_place_of_a_handshake_are_told(
    authority: Authority, certificate: Certificate
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
        participant_at(server, trusted=authority.ca_file) as eyes,
    ):
        fault, _, _ = await eyes.fault()
        assert fault.condition == "tls-handshake-failed"
        # It is no direct TLS that was asked for: nothing is wrong with XMPP_SERVICE.
        assert "xmpps" not in fault.hint
        await eyes.joined()


# Channel binding.


@pytest.mark.parametrize(
    ("server_process", "checked"),
    [("prosody", True), ("ejabberd", True), ("ejabberd", False)],
    indirect=["server_process"],
)
async def test_a_login_is_bound_to_tls_1_2_and_on_ejabberd_to_1_3_with_checks_off(
    checked: bool, stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tls.make_context

    def older(settings: Settings, place: Place) -> ssl.SSLContext:
        context = make(settings, place)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    if checked:
        monkeypatch.setattr(tls, "make_context", older)
    else:
        stage.set(tls_verify=False, tls_ca_file=None)
    async with stage.participant() as eyes:
        await eyes.joined()
        status = eyes.status()
        assert status.tls is not None
        version = "TLSv1.2" if checked else "TLSv1.3"
        assert (status.tls.version, status.tls.verified) == (version, checked)
        assert (status.sasl or "").endswith("-PLUS")


async def exporting(wire: Wire) -> None:
    """Over TLS 1.3 bind by `tls-exporter` alone, as Prosody 13 does, and before by `tls-unique`."""
    assert wire.tls is not None
    binding = "tls-exporter" if wire.tls.version() == "TLSv1.3" else "tls-unique"
    await Scram(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), bindings=(binding,))(wire)


@pytest.mark.parametrize("direct_tls", [False, True])
async def test_a_login_that_tls_1_3_cannot_bind_is_bound_over_tls_1_2(
    direct_tls: bool, certificate: Certificate
) -> None:
    lie = replace(HONEST, authenticate=exporting)
    async with ScriptedServer(lie, certificate=certificate, direct_tls=direct_tls) as server:
        report = await check(server.environment(NODE_TLS_REJECT_UNAUTHORIZED="0"))
        assert detail(report, "sasl").endswith(", bound to TLS by tls-unique")
        assert "once more over TLS 1.2" in detail(report, "tls")
        assert [stage.name for stage in report.phases].count("tls") == 1
        assert len(server.wires) == 2
        assert AUTH not in server.wires[0].heard


async def test_a_login_that_no_tls_can_bind_is_refused_by_the_bindings_name(
    certificate: Certificate, authority: Authority
) -> None:
    async def refuse(wire: Wire) -> None:
        wire.abort()
        await wire.gone()

    scram = Scram(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), bindings=("tls-exporter",))
    lie = replace(HONEST, authenticate=scram)
    unchecked = {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}
    for second in (lie, replace(lie, secure=refuse)):
        async with ScriptedServer(lie, second, certificate=certificate) as server:
            report = await check(server.environment(**unchecked))
            assert report.condition == "unsupported-channel-binding-type"
            assert '"tls-exporter"' in report.diagnosis
            # The second time the server offers no more than the first, or hangs up.
            stage = "tls" if second is not lie else "sasl"
            assert "XMPP_TLS_CA_FILE" in failed(report, stage).hint
            assert AUTH not in server.heard
    # To look at a certificate, no login has to be possible.
    async with ScriptedServer(lie, replace(lie, secure=refuse), certificate=certificate) as server:
        look = await look_at_certificate(settings(server.environment()))
        assert look.certificate is not None
        assert len(server.wires) == 1
    # Over a checked certificate no binding is needed.
    async with ScriptedServer(lie, certificate=certificate) as server:
        report = await check(server.environment(XMPP_TLS_CA_FILE=str(authority.ca_file)))
        assert detail(report, "sasl").endswith("; chosen: SCRAM-SHA-256")
        assert len(server.wires) == 1


# Which port, and who we are.


@pytest.mark.parametrize("pieces", [1, 7])
async def test_an_alert_of_tls_in_place_of_xml_is_a_port_for_direct_tls(pieces: int) -> None:
    alert = bytes.fromhex("15030300020250")
    parts = [alert[:pieces], alert[pieces:]]
    async with ScriptedServer(replace(HONEST, authenticate=saying(*parts))) as server:
        report = await check(server.environment())
        assert report.condition == "wrong-version-number"
        assert "write xmpps://" in failed(report, "tls").hint


@pytest.mark.parametrize("direct_tls", [False, True])
@pytest.mark.parametrize("checked", [False, True])
async def test_the_account_is_named_in_the_header_once_the_certificate_was_checked(
    checked: bool, direct_tls: bool, certificate: Certificate, authority: Authority
) -> None:
    trust = {"XMPP_TLS_CA_FILE": str(authority.ca_file)}
    unchecked = {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}
    async with ScriptedServer(certificate=certificate, direct_tls=direct_tls) as server:
        report = await check(server.environment(**(trust if checked else unchecked)))
        assert "chosen: SCRAM-SHA-256" in detail(report, "sasl")
        headers = re.findall(rb"<stream:stream [^>]*>", server.wires[0].heard)
    named = [f" from='{USERNAME}@{DOMAIN}'".encode() in header for header in headers]
    # Before TLS, before the login, and after it.
    assert named == [*[False] * (not direct_tls), checked, checked]


# Addresses.


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")
async def test_an_ipv6_address_in_brackets_is_reached(
    authority: Authority, certificate: Certificate
) -> None:
    async with ScriptedServer(certificate=certificate, host="::1") as server:
        service = server.environment()["XMPP_SERVICE"]
        assert service.startswith("xmpp://[::1]:")
        async with participant_at(server, trusted=authority.ca_file) as eyes:
            await eyes.joined()
            assert eyes.status().service == service
