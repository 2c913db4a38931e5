"""Logins that are refused though the password may be right, and what a check finds out of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from bridge.xmpp.checks import probe
from bridge.xmpp.link import connection
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import EXPLAINED, NotReflectedError
from bridge.xmpp.queries.keepalive import TIMING
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.relay import Relay, Secured, Way
from tests.faults.scripted_server import HONEST, Scram, Script, ScriptedServer, Wire
from tests.servers.certificates import Authority, Certificate
from tests.servers.process import ServerProcess
from tests.xmpp.probing import check, detail, failed

AUTH = b"<auth"
PLUS = Scram(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), bindings=("tls-server-end-point",))
HIDDEN = Scram(hides_plus=True)


# Something in between ends TLS, before a real server.


@pytest.fixture
async def proxy(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Relay]:
    """A proxy with the server's certificate, on TLS 1.2, where both servers offer binding."""
    server = server_process.server
    as_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    as_server.load_cert_chain(server_process.certificate.chain, server_process.certificate.key)
    as_client = ssl.create_default_context(cafile=str(authority.ca_file))
    for context in (as_server, as_client):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    secured = Secured(as_server, as_client, server.domain)
    async with Relay(server.host, server.port("direct"), secured) as relay:
        yield relay


@pytest.mark.parametrize("password", ["right", "wrong"])
async def test_a_bound_login_that_a_proxy_spoils_is_told_from_a_wrong_password_by_a_check(
    server_process: ServerProcess, proxy: Relay, password: str
) -> None:
    service = f"xmpps://127.0.0.1:{proxy.port}"
    environment = server_process.server.environment("direct", XMPP_SERVICE=service)
    if password == "wrong":
        environment["XMPP_PASSWORD"] = "not-the-password"
    told = failed(await check(environment), "sasl")
    assert "bound to TLS by tls-unique" in told.detail
    assert ("the password is right" in told.detail) is (password == "right")
    assert ("XMPP_PASSWORD" in told.hint) is (password == "wrong")
    assert proxy.passed[Way.TO_SERVER].count(AUTH) == 2


# What takes a server that lies.


async def attempt(script: Script, certificate: Certificate, authority: Authority) -> str:
    """Check, and have the bridge log in; return what the check says in its stage `sasl`."""
    async with ScriptedServer(script, certificate=certificate) as server:
        environment = server.environment(XMPP_TLS_CA_FILE=str(authority.ca_file))
        told = failed(await check(environment), "sasl")
        before = server.heard.count(AUTH)
        assert before == 2
        async with participant_at(server, trusted=authority.ca_file) as eyes:
            fault, changed, _ = await eyes.fault()
            assert changed.phase is Phase.FAILED
            doubtful = fault.condition not in EXPLAINED
            assert ("a check tries once more" in fault.hint) is doubtful
            assert server.heard.count(AUTH) == before + 1
    return f"{told.detail} {told.hint}"


async def test_an_offer_that_was_cut_out_is_told_by_a_check(
    certificate: Certificate, authority: Authority
) -> None:
    told = await attempt(replace(HONEST, authenticate=HIDDEN), certificate, authority)
    assert "malformed-request" in told
    assert "the password is right" in told
    assert "cuts the offer of channel binding out" in told


def refusing(
    condition: str, *mechanisms: str, bindings: Sequence[str] = (), text: str = ""
) -> Script:
    """Refuse each login with this condition."""

    async def refuse(wire: Wire) -> None:
        await wire.open(scripted.mechanisms(*mechanisms, bindings=bindings))
        await wire.element("auth")
        wire.send(scripted.sasl_failure(condition, text))
        await wire.gone()

    return replace(HONEST, authenticate=refuse)


async def test_a_second_login_is_tried_after_any_refusal_and_only_once(
    certificate: Certificate, authority: Authority
) -> None:
    script = refusing("account-disabled", *PLUS.offered, bindings=PLUS.bindings)
    told = await attempt(script, certificate, authority)
    assert "failed, too (account-disabled)" in told


@pytest.mark.parametrize(
    ("text", "logins"),
    [
        ("Invalid username or password", 1),
        ("The PASSWORD is wrong.", 1),
        ("Invalid channel binding", 2),
        ("Wrong password, or wrong channel binding", 2),
        ("The response does not match.", 2),
        ("", 2),
    ],
)
async def test_no_second_login_is_tried_where_the_server_says_that_it_is_the_password(
    text: str, logins: int, certificate: Certificate, authority: Authority
) -> None:
    script = refusing("not-authorized", *PLUS.offered, bindings=PLUS.bindings, text=text)
    async with ScriptedServer(script, certificate=certificate) as server:
        environment = server.environment(XMPP_TLS_CA_FILE=str(authority.ca_file))
        report = await check(environment)
        assert server.heard.count(AUTH) == logins
        told = failed(report, "sasl")
        assert ("second login" in told.detail) is (logins == 2)
        assert "a check tries once more" not in told.hint
        assert "XMPP_PASSWORD" in told.hint


@pytest.mark.parametrize("first", [("PLAIN",), (*PLUS.offered, "PLAIN")])
async def test_the_password_itself_is_never_sent_twice_nor_in_a_second_login(
    first: tuple[str, ...], certificate: Certificate, authority: Authority
) -> None:
    bindings = PLUS.bindings if len(first) > 1 else ()
    scripts = refusing("not-authorized", *first, bindings=bindings), refusing("aborted", "PLAIN")
    async with ScriptedServer(*scripts, certificate=certificate) as server:
        report = await check(server.environment(XMPP_TLS_CA_FILE=str(authority.ca_file)))
        assert server.heard.count(AUTH) == 1
        assert len(server.wires) == (2 if bindings else 1)
    assert report.condition == "not-authorized"
    told = "failed, too (invalid-mechanism)" in failed(report, "sasl").detail
    assert told is bool(bindings)


OFFERS = {
    "the same": ("SCRAM-SHA-1\x1eSCRAM-SHA-256\x1ftls-exporter\x1etls-server-end-point", None),
    "the same by version 0.3": (
        "SCRAM-SHA-1,SCRAM-SHA-256|tls-exporter,tls-server-end-point",
        None,
    ),
    "a better mechanism": ("SCRAM-SHA-256\x1eSCRAM-SHA-512\x1ftls-exporter", "aborted"),
    "another binding": ("SCRAM-SHA-1\x1eSCRAM-SHA-256\x1ftls-unique", "aborted"),
}
"""What the server says that it offered (XEP-0474), and what comes of it."""


@pytest.mark.parametrize(("hashed", "condition"), OFFERS.values(), ids=OFFERS)
async def test_an_offer_that_was_changed_on_the_way_ends_the_login_before_the_proof(
    hashed: str, condition: str | None
) -> None:
    scram = Scram(
        ("SCRAM-SHA-256", "SCRAM-SHA-1"),
        bindings=("tls-server-end-point", "tls-exporter"),
        hashed=hashed,
    )
    script = replace(HONEST, authenticate=scram)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        if condition is None:
            await eyes.joined()
        else:
            fault, changed, _ = await eyes.fault()
            assert (fault.condition, changed.phase) == (condition, Phase.FAILED)
            assert b"<response" not in server.heard


# What is offered.

SASL2 = """
    <authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-256</mechanism><inline>
        <bind xmlns='urn:xmpp:bind:0'/>
        <fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-NONE</mechanism></fast>
    </inline></authentication>"""
LIMITS = """
    <limits xmlns='urn:xmpp:stream-limits:0'>
        <max-bytes>10000</max-bytes><idle-seconds>60</idle-seconds>
    </limits>"""


def offering(before: str, after: str = "") -> Script:
    """Offer this too before the login, and after it."""

    class Offering(Wire):
        async def open(self, features: str) -> None:
            await Wire.open(self, features + (before if "mechanism" in features else after))

    async def authenticate(wire: Wire) -> None:
        wire.__class__ = Offering
        await Scram()(wire)

    return replace(HONEST, authenticate=authenticate)


async def test_a_check_says_what_the_server_offers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "LEAVE_SECONDS", 0.01)  # it does not confirm that we leave
    async with ScriptedServer(offering(SASL2, LIMITS)) as server:
        report = await check(server.environment())
    assert 'SASL2 "SCRAM-SHA-256", Bind 2, FAST "HT-SHA-256-NONE"' in detail(report, "sasl")
    assert "10,000 bytes a stanza and 60 s of silence" in detail(report, "bind")


# The limits of the stream.


@pytest.mark.parametrize("later", [False, True])
async def test_a_connection_that_is_lost_after_a_stanza_over_the_limit_is_told_with_both(
    later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LIMIT_SECONDS", 0.0 if later else 10.0)

    async def stand(wire: Wire) -> None:
        await wire.element("message")
        wire.hang_up()

    script = replace(offering("", LIMITS), stand=stand)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.joined()
        with pytest.raises(NotReflectedError):
            await eyes.membership.say("x" * 20_000, 30)
        fault, _, _ = await eyes.fault()
        assert fault.condition == "connection-reset"
        told = "takes 10,000 bytes a stanza, and was sent one of 20," in fault.message
        assert told is not later


@pytest.mark.parametrize("idle", [1, 60])
async def test_a_connection_that_is_lost_after_a_silence_over_the_limit_is_told_with_both(
    idle: int,
) -> None:
    async def stand(wire: Wire) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.1):
                await wire.gone()
        wire.hang_up()

    script = replace(offering("", LIMITS.replace("60", str(idle))), stand=stand)
    timing = replace(TIMING, check_interval=60.0)  # as if the machine was asleep: nobody pings
    async with ScriptedServer(script) as server, participant_at(server, timing=timing) as eyes:
        await eyes.joined()
        fault, _, _ = await eyes.fault()
        told = "It allows 1 s of silence, and heard nothing for 1 s." in fault.message
        assert told is (idle == 1)
