"""TLS and logins bound to it. What real servers show of this stands in `tests/e2e/test_faults.py`;
here is what takes a server that lies, or one that is set up oddly."""

import asyncio
import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bridge.settings.values import Service
from bridge.xmpp.link.endpoint import Endpoint, connect
from tests.e2e import noise
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
from tests.servers.ports import silent_address
from tests.servers.process import ServerProcess
from tests.servers.prosody import running_prosody

AUTH = b"<auth"
PLUS = Scram(
    ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), bindings=("tls-exporter", "tls-server-end-point")
)


@pytest.fixture
def certificate(authority: Authority) -> Certificate:
    """One that the authority vouches for, and that names the domain and no host."""
    return authority.issue(DOMAIN)


def trusted(authority: Authority) -> dict[str, str | None]:
    return {"XMPP_TLS_CA_FILE": str(authority.ca_file)}


def self_signed(directory: Path) -> Certificate:
    """For the right domain, vouched for by nobody but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DOMAIN)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(DOMAIN)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate = Certificate(*(directory / f"self.{suffix}" for suffix in ("crt", "key", "pem")))
    certificate.chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    certificate.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_a_self_signed_certificate_is_refused_until_it_is_trusted(
    direct_tls: bool, tmp_path: Path
) -> None:
    certificate = self_signed(tmp_path)
    async with ScriptedServer(certificate=certificate, direct_tls=direct_tls) as server:
        async with BridgeProcess(tmp_path / "refused", server.environment()) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "certificate-verify-failed"
            assert "self-signed certificate" in status["lastError"]["message"]
            assert "XMPP_TLS_CA_FILE" in status["lastError"]["hint"]
            assert "nextAttemptAt" in status
        assert AUTH not in server.heard
        anchors = server.environment(XMPP_TLS_CA_FILE=str(certificate.chain))
        async with BridgeProcess(tmp_path / "trusted", anchors) as bridge:
            assert (await bridge.joined())["tls"]["verified"] is True


async def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger").issue(DOMAIN)
    async with ScriptedServer(certificate=stranger) as server:
        settings = server.environment(**trusted(authority))
        async with BridgeProcess(tmp_path, settings) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "certificate-verify-failed"
            assert "XMPP_TLS_CA_FILE" in status["lastError"]["hint"]
        assert AUTH not in server.heard


async def test_a_certificate_for_the_host_and_not_the_domain_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    async with ScriptedServer(certificate=authority.issue("127.0.0.1")) as server:
        async with BridgeProcess(tmp_path, server.environment(**trusted(authority))) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "certificate-verify-failed"
            assert DOMAIN in status["lastError"]["hint"]
            assert "XMPP_DOMAIN" in status["lastError"]["hint"]
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


async def test_anchors_that_are_none_are_told_by_the_name_of_the_setting(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("these are not the certificates you are looking for\n", encoding="ascii")
    async with ScriptedServer(certificate=certificate) as server:
        settings = server.environment(XMPP_TLS_CA_FILE=str(rubbish))
        async with BridgeProcess(tmp_path / "home", settings) as bridge:
            status = await bridge.until(lambda it: it["phase"] in {"failed", "unconfigured"})
            told = json_of(status)
            assert "XMPP_TLS_CA_FILE" in told
            assert str(rubbish) in told
        assert AUTH not in server.heard


def json_of(status: dict[str, object]) -> str:
    return f"{status.get('lastError')} {status.get('problems')}"


@pytest.mark.parametrize("verified", [True, False])
async def test_plain_is_used_under_a_verified_certificate_alone(
    verified: bool, authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    async def plain_only(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("PLAIN"))
        await wire.element("auth")
        wire.send(scripted.sasl("success"))

    unchecked = {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}
    script = replace(HONEST, authenticate=plain_only)
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = server.environment(**(trusted(authority) if verified else unchecked))
        async with BridgeProcess(tmp_path, settings) as bridge:
            if verified:
                assert (await bridge.joined())["sasl"] == "PLAIN"
            else:
                status = await bridge.until(lambda it: it["phase"] == "failed")
                assert status["lastError"]["condition"] == "invalid-mechanism"
                assert AUTH not in server.heard
                assert_no_password(server.heard)


async def test_checks_that_are_off_let_scram_in_and_are_shouted_about(
    tmp_path: Path,
) -> None:
    both = Scram(("PLAIN", "SCRAM-SHA-256"))
    script = replace(HONEST, authenticate=both)
    async with ScriptedServer(script, certificate=self_signed(tmp_path)) as server:
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
    newest_tls: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
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
        ScriptedServer(script, certificate=certificate, newest_tls=newest_tls) as server,
        BridgeProcess(home, server.environment(**trusted(authority))) as bridge,
    ):
        status = await bridge.until(lambda it: it["connected"] or it["phase"] == "failed")
    return status, flags[0]


async def test_under_tls_1_2_a_login_is_bound_to_the_handshake(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    scram = Scram(("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"))
    status, first = await bound_login(
        scram, authority, certificate, tmp_path, ssl.TLSVersion.TLSv1_2
    )
    assert (status["connected"], status["sasl"]) == (True, "SCRAM-SHA-256-PLUS")
    assert first.startswith("p=tls-unique,,")


async def test_under_tls_1_3_a_login_is_bound_to_the_certificate_where_the_server_can(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    status, first = await bound_login(PLUS, authority, certificate, tmp_path)
    assert (status["connected"], status["sasl"]) == (True, "SCRAM-SHA-256-PLUS")
    assert first.startswith("p=tls-server-end-point,,")


@pytest.mark.parametrize("bindings", [("tls-exporter",), ("tls-telepathy",), ()])
async def test_without_a_common_binding_the_login_goes_unbound(
    bindings: tuple[str, ...], authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    scram = replace(PLUS, bindings=bindings)
    status, first = await bound_login(scram, authority, certificate, tmp_path)
    assert (status["connected"], status["sasl"]) == (True, "SCRAM-SHA-256")
    assert first.startswith("n,,")


async def test_a_server_that_offers_no_binding_is_told_that_we_could(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    status, first = await bound_login(Scram(), authority, certificate, tmp_path)
    assert (status["connected"], status["sasl"]) == (True, "SCRAM-SHA-256")
    assert first.startswith("y,,")


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


async def test_with_checks_off_an_offer_that_turns_binding_off_is_refused(
    certificate: Certificate, tmp_path: Path
) -> None:
    """The one in between names only what we have not, so that we would go unbound."""
    script = replace(HONEST, authenticate=replace(PLUS, bindings=("tls-exporter",)))
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = server.environment(NODE_TLS_REJECT_UNAUTHORIZED="0")
        async with BridgeProcess(tmp_path, settings) as bridge:
            status = await bridge.until(lambda it: it["connected"] or it["phase"] == "failed")
            assert status["lastError"]["condition"] == "bad-server-signature"
            assert "binds logins in no way" in status["lastError"]["message"]
        assert AUTH not in server.heard


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


@needs_ipv6
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_name_with_two_addresses_is_reached_at_the_one_that_listens(
    host: str, tmp_path: Path
) -> None:
    resolver = noise.at_start(tmp_path / "site", noise.TWO_ADDRESSES)
    async with ScriptedServer(host=host) as server:
        settings = server.environment(XMPP_SERVICE=f"xmpp://two.example:{server.port}")
        async with BridgeProcess(tmp_path / "home", settings | resolver) as bridge:
            await bridge.joined()


def endpoint_of(address: tuple[str, int]) -> Endpoint:
    return Endpoint(Service("xmpp", *address), socket.AF_INET, address)


async def test_addresses_that_refuse_or_say_nothing_do_not_keep_from_the_next() -> None:
    with socket.socket() as refusing, socket.create_server(("127.0.0.1", 0)) as listening:
        refusing.bind(("127.0.0.1", 0))  # and does not listen
        with silent_address() as silent:
            addresses = [refusing.getsockname(), silent, listening.getsockname()]
            endpoint, sock = await connect([[endpoint_of(one) for one in addresses]], 3.0)
            sock.close()
            assert endpoint.address == listening.getsockname()


async def test_when_all_addresses_refuse_the_last_refusal_is_told() -> None:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            await connect([[endpoint_of(it.getsockname()) for it in (one, two)]], 3.0)
