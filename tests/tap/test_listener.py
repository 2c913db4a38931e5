"""Clients and servers of all kinds, with tap between them."""

import asyncio
import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from ssl import TLSVersion
from xml.etree.ElementTree import Element

import pytest

from bridge.capture.capture import Capture
from bridge.commands.explain import read_log
from bridge.settings.table import Settings
from bridge.settings.values import Service
from bridge.tap.lane import MAX_HELD_BYTES
from bridge.tap.listener import GRACE_SECONDS, STAGE_SECONDS, Side
from bridge.tap.witness import UNFINISHED_SECONDS
from bridge.wire.names import PING
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.faults import ConnectionFailedError
from tests.faults import scripted_server as scripted
from tests.faults.reaching import settings_for
from tests.faults.relay import Relay, Treatment
from tests.faults.scripted_server import HONEST, Scram, ScriptedServer, Wire
from tests.servers.certificates import Authority, Certificate
from tests.servers.process import ServerProcess
from tests.servers.server import Endpoint, Transport
from tests.tap.tapping import (
    SECONDS,
    STREAM,
    Client,
    Tap,
    easy,
    forgotten,
    logged_in,
    nothing,
    plain,
    tapped,
    wrong_certificate,
)
from tests.xmpp.probing import settings as settings_of

RESTS = 20
"""If so many times in a row nothing has gone on, nothing will."""


def behind(tap: Tap, settings: Settings, *, trusts: bool = True) -> Settings:
    """The settings of a bot that tap stands before."""
    scheme = settings.service.scheme if settings.service else "xmpp"
    anchor = tap.anchor if trusts and settings.tls_ca_file else None
    return settings._replace(service=Service(scheme, "127.0.0.1", tap.port), tls_ca_file=anchor)


def bot(settings: Settings, *, binds: bool = False) -> Connection:
    """A bot; without `binds` it says nothing of channel binding."""
    nothing = lambda what: None  # noqa: E731
    return Connection(settings, resource="r", on_stage=nothing, on_stanza=nothing, binds=binds)


async def refused(settings: Settings, *, binds: bool = False) -> None:
    connection = bot(settings, binds=binds)
    with pytest.raises(ConnectionFailedError):
        await connection.open()
    connection.close()


@pytest.mark.parametrize("login", [False, True], ids=["passed", "own"])
async def test_a_bot_logs_in_at_each_server_by_each_transport(
    endpoint: Endpoint, login: bool, tmp_path: Path
) -> None:
    settings = settings_of(endpoint.environment())
    async with tapped(settings, tmp_path, login=login) as tap:
        connection = bot(behind(tap, settings))
        await connection.open()
        connection.start_dispatch()
        await connection.request("get", settings.domain, Element(f"{{{PING}}}ping"))
        connection.leave()
        connection.close()
    assert tap.names() == []
    assert [each.stream.client.bound for each in tap.witness.capture.streams] == [True]


def offering(features: str) -> str:
    """The header of a server, and its features."""
    return f"{scripted.HEADER}<stream:features>{features}</stream:features>"


LYING = Scram(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), ("tls-server-end-point",))
Y = Scram(("SCRAM-SHA-256",), hides_plus=True)


def scripted_settings(server: ScriptedServer, authority: Authority) -> Settings:
    settings = settings_for(server, trusted=authority.ca_file)
    return settings._replace(service=Service("xmpp", server.host, server.port))


@pytest.mark.parametrize("y", [False, True], ids=["n", "y"])
@pytest.mark.parametrize(
    ("binding", "newest"),
    [
        ("tls-server-end-point", TLSVersion.TLSv1_3),
        ("tls-server-end-point", TLSVersion.TLSv1_2),
        ("tls-unique", TLSVersion.TLSv1_2),
    ],
)
async def test_with_login_a_server_that_enforces_binding_lets_the_bot_in(
    binding: str,
    newest: TLSVersion,
    y: bool,
    certificate: Certificate,
    authority: Authority,
    tmp_path: Path,
) -> None:
    offered = ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")
    # XEP-0474, 3.1: what was offered, in order.
    hashed = f"{chr(0x1E).join(sorted(offered))}{chr(0x1F)}{binding}"
    script = replace(HONEST, authenticate=Scram(offered, (binding,), hashed=hashed))
    async with ScriptedServer(script, certificate=certificate) as server:
        server.newest(newest)
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path, login=True) as tap:
            connection = bot(behind(tap, settings), binds=y)
            await connection.open()
            connection.close()
        assert tap.names() == []
        assert b"SCRAM-SHA-256-PLUS" in server.heard
    (note,) = [each for each in tap.shown if each.cause == "own-login"]
    assert f"(flag {'y' if y else 'n'})" in note.message
    assert f"bound by {binding}" in note.message


@pytest.mark.parametrize("newest", [TLSVersion.TLSv1_2, TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("of_bot", [TLSVersion.TLSv1_2, TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
async def test_each_connection_has_the_version_of_tls_that_its_side_has(
    of_bot: TLSVersion,
    newest: TLSVersion,
    certificate: Certificate,
    authority: Authority,
    tmp_path: Path,
) -> None:
    async with ScriptedServer(easy(scripted.stand), certificate=certificate) as server:
        server.newest(newest)
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path) as tap:
            client = await Client.at(tap.port)
            await client.secure(tap.anchor, of_bot)
            await client.log_in()
            versions = [each and each.version() for each in (client.tls, server.wires[0].tls)]
            client.send("</stream:stream>")
            await client.gone()
    assert versions == [each.name.replace("_", ".") for each in (of_bot, newest)]
    assert tap.names() == []


@pytest.mark.parametrize(
    ("authenticate", "name"),
    [
        (LYING, "login binds"),
        (Y, "login downgrade"),
        (replace(LYING, hashed="SCRAM-SHA-1"), "login binds"),
    ],
    ids=["bound", "y", "XEP-0474"],
)
async def test_a_login_that_cannot_pass_is_named(
    authenticate: Scram,
    name: str,
    certificate: Certificate,
    authority: Authority,
    tmp_path: Path,
) -> None:
    script = replace(HONEST, authenticate=authenticate)
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path) as tap:
            await refused(behind(tap, settings), binds=True)
        assert tap.names() == [name]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (scripted.sasl("auth", "p=tls-unique,,n=a,r=b"), "login binds"),
        ("<authenticate xmlns='urn:xmpp:sasl:2'/>", "login unoffered"),
    ],
    ids=["bound", "SASL2"],
)
async def test_a_login_that_tap_refuses_is_no_error_once_another_succeeds(
    asked: str, name: str, tmp_path: Path
) -> None:
    async with (
        ScriptedServer(easy(scripted.stand)) as server,
        tapped(settings_for(server), tmp_path) as tap,
    ):
        client = await Client.at(tap.port)
        client.send(STREAM)
        await client.sees("</stream:features>")
        client.send(asked.replace(" ", " mechanism='SCRAM-SHA-1-PLUS' ", 1))
        await client.sees("</failure>")
        client.send(scripted.sasl("auth", "\0a\0b").replace(" ", " mechanism='PLAIN' ", 1))
        await client.sees("<success")
        client.writer.close()
        await tap.is_left()
    assert tap.names() == [name]
    assert not any(each.has_error() for each in tap.witness.capture.streams)


PLUS = ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("offered", "mechanism", "first", "verdict", "name"),
    [
        (PLUS, "SCRAM-SHA-256", "y,,n=a,r=b", "success", "could-bind"),
        (PLUS, "SCRAM-SHA-256", "y,,n=a,r=b", "not-authorized", "downgrade"),
        (PLUS, "SCRAM-SHA-256", "n,n=a", "malformed-request", "malformed-response"),
        (("PLAIN",), "PLAIN", "", "malformed-request", "empty-response"),
        (("PLAIN",), "PLAIN", "\0a\0b", "not-authorized", "refused-login"),
        (("DIGEST-MD5", "PLAIN"), "DIGEST-MD5", "a", "not-authorized", "old-mechanism"),
    ],
)
async def test_a_login_that_the_server_judges_is_named_by_what_is_wrong_with_it(
    offered: tuple[str, ...],
    mechanism: str,
    first: str,
    verdict: str,
    name: str,
    tmp_path: Path,
) -> None:
    async def judge(wire: Wire) -> None:
        await wire.open(scripted.mechanisms(*offered))
        await wire.element("auth")
        is_right = verdict == "success"
        wire.send(scripted.sasl(verdict) if is_right else scripted.sasl_failure(verdict))
        await wire.gone()

    async with (
        ScriptedServer(replace(HONEST, authenticate=judge)) as server,
        tapped(settings_for(server), tmp_path) as tap,
    ):
        client = await Client.at(tap.port)
        client.send(STREAM)
        await client.sees("</stream:features>")
        client.send(scripted.sasl("auth", first).replace(" ", f" mechanism='{mechanism}' "))
        assert (await tap.shows("login")).cause == name
        client.writer.close()


async def test_with_login_a_server_whose_offer_was_changed_gets_no_proof(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    script = replace(HONEST, authenticate=Scram(hashed="SCRAM-SHA-1"))
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path, login=True) as tap:
            await refused(behind(tap, settings))
        assert tap.names() == ["login server-login"]
        assert b"<response" not in server.heard


async def test_with_login_nothing_waits_for_a_side_that_has_ended(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    # The server is gone while tap derives its proof.
    async def challenge_and_go(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-1"))
        nonce = scripted.content(await wire.element("auth")).rpartition("r=")[2]
        wire.send(scripted.sasl("challenge", f"r={nonce}s,s=c2FsdA==,i=200000"))
        wire.abort()

    script = replace(HONEST, authenticate=challenge_and_go)
    async with ScriptedServer(script, certificate=certificate) as server:
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path, login=True) as tap:
            async with asyncio.timeout(STAGE_SECONDS / 2):
                await refused(behind(tap, settings))
                while tap.links():  # noqa: ASYNC110 - tap tells of no end
                    await asyncio.sleep(0.01)
    assert tap.names() == ["ended dropped"]


async def test_a_wrong_password_of_the_bot_stays_with_tap(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    async with ScriptedServer(HONEST, certificate=certificate) as server:
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path, login=True) as tap:
            wrong = settings._replace(password=type(settings.password)("wrong"))
            await refused(behind(tap, wrong))
        assert tap.names() == ["login own-refusal"]
        assert b"<auth" not in server.heard
    assert tap.record.path is not None
    capture = Capture()
    with tap.record.path.open("rb") as file:
        read_log(file, "tap.jsonl", capture)
    (finding,) = capture.streams[0].findings()  # who reads the file does not blame the server
    assert "said by xmpp-bridge tap in the server's place" in finding.message


@pytest.mark.parametrize("direct", [False, True], ids=["starttls", "direct"])
@pytest.mark.parametrize("wrong", ["expired", "of another name", "of a stranger"])
async def test_a_servers_certificate_is_checked(
    wrong: str, direct: bool, authority: Authority, tmp_path: Path
) -> None:
    certificate = wrong_certificate(wrong, authority, tmp_path)
    async with ScriptedServer(HONEST, certificate=certificate, direct_tls=direct) as server:
        settings = settings_for(server, trusted=authority.ca_file)
        scheme = "xmpps" if direct else "xmpp"
        settings = settings._replace(service=Service(scheme, server.host, server.port))
        async with tapped(settings, tmp_path) as tap:
            await refused(behind(tap, settings))
            shown = await tap.shows("tls")
        assert shown.cause == "certificate"
        assert b"<auth" not in server.heard


@pytest.mark.parametrize("transport", ["starttls", "direct"])
async def test_a_bot_that_does_not_trust_tap_is_told_from_others(
    prosody_process: ServerProcess, transport: Transport, tmp_path: Path
) -> None:
    settings = settings_of(prosody_process.server.environment(transport))
    async with tapped(settings, tmp_path) as tap:
        await refused(behind(tap, settings, trusts=False))
        assert (await tap.shows("tls")).cause == "distrusted"


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "starttls"])
async def test_a_bot_that_begins_otherwise_than_its_server_is_told(
    prosody_process: ServerProcess, direct: bool, tmp_path: Path
) -> None:
    transport: Transport = "starttls" if direct else "direct"
    settings = settings_of(prosody_process.server.environment(transport))
    async with tapped(settings, tmp_path) as tap:
        scheme = "xmpps" if direct else "xmpp"
        service = Service(scheme, "127.0.0.1", tap.port)
        await refused(behind(tap, settings)._replace(service=service))
    assert [each.cause for each in tap.shown] == ["mismatch", "never-in"]
    assert tap.names() == ["tls never-in"]


async def test_a_server_that_is_not_there_is_named(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    async with ScriptedServer(HONEST, certificate=certificate) as server:
        settings = scripted_settings(server, authority)
    async with tapped(settings, tmp_path) as tap:
        client = await Client.at(tap.port)
        client.send(STREAM)
        await client.gone()
        assert (await tap.shows("ended")).cause == "unreachable"


async def test_what_came_together_goes_on_together(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    # Behind `<starttls/>`, Prosody takes a blank that comes by itself for the beginning of TLS.
    async def secure(wire: Wire) -> None:
        await wire.open(scripted.STARTTLS)
        before = len(wire.heard)
        await wire.hello()
        assert wire.heard[before:].endswith(b"/>\n")

    script = replace(HONEST, secure=secure, authenticate=nothing, bind=nothing, stand=nothing)
    async with ScriptedServer(replace(script, join=nothing), certificate=certificate) as server:
        settings = scripted_settings(server, authority)
        async with tapped(settings, tmp_path) as tap:
            client = await Client.at(tap.port)
            client.send(STREAM)
            await client.sees("</stream:features>")
            client.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>\n")
            async with asyncio.timeout(SECONDS):
                await forgotten(server)
            client.writer.close()


# After the login, with a server that says what a test has it say.


async def inside(tap: Tap, settings: Settings) -> Connection:
    connection = bot(behind(tap, settings))
    await connection.open()
    connection.start_dispatch()
    return connection


@pytest.mark.parametrize("side", ["server", "bot"])
async def test_a_cut_of_either_side_is_a_cut_for_the_other(side: str, tmp_path: Path) -> None:
    async def cut(wire: Wire) -> None:
        if side == "server":
            wire.abort()
        await wire.gone()

    async with ScriptedServer(plain(stand=cut)) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path) as tap:
            connection = await inside(tap, settings)
            if side == "bot":
                connection._stream.abort()  # noqa: SLF001 - as a kill -9 does
            async with asyncio.timeout(SECONDS):
                await (connection.ended if side == "server" else forgotten(server))
    assert tap.names() == (["ended dropped"] if side == "server" else [])
    assert len(tap.witness.capture.streams) == 1


@pytest.mark.parametrize("side", ["server", "bot"])
async def test_a_side_that_says_that_nothing_more_comes_ends_both(
    side: str, tmp_path: Path
) -> None:
    async def stand(wire: Wire) -> None:
        if side == "server":
            wire.shut_down()
        await wire.gone()

    async with (
        ScriptedServer(easy(stand)) as server,
        tapped(settings_for(server), tmp_path) as tap,
    ):
        client = await logged_in(tap.port)
        if side == "bot":
            client.writer.write_eof()
        await client.gone()
        async with asyncio.timeout(SECONDS):
            await forgotten(server)
    assert tap.names() == (["ended dropped"] if side == "server" else [])


async def test_a_bot_that_vanished_keeps_nothing_open_once_its_server_lets_it_go(
    tmp_path: Path,
) -> None:
    vanished = asyncio.Event()

    async def stand(wire: Wire) -> None:
        await vanished.wait()
        wire.send(scripted.said("Ann", "x" * 4_000_000))  # more than the network takes
        wire.abort()

    async with (
        ScriptedServer(easy(stand)) as server,
        tapped(settings_for(server), tmp_path) as tap,
        Relay("127.0.0.1", tap.port) as way,
    ):
        client = await logged_in(way.port)
        way.treat(Treatment.STALL)
        vanished.set()
        assert (await tap.shows("ended")).cause == "dropped"
        async with asyncio.timeout(SECONDS):
            while tap.links():  # noqa: ASYNC110 - tap tells of no end
                await asyncio.sleep(0.01)
        client.writer.close()


async def test_a_stanza_that_a_cut_divides_goes_out_as_far_as_it_came(tmp_path: Path) -> None:
    half = "<message from='room@conference.localhost/Ann' type='groupchat'><body>ha"
    async with ScriptedServer(easy(_saying_and_cut(half))) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path) as tap:
            client = await logged_in(tap.port)
            assert (await client.gone()).endswith(half.encode())
    assert tap.names() == ["ended dropped"]


def _saying_and_cut(xml: str) -> scripted.Step:
    async def say(wire: Wire) -> None:
        wire.send(xml)
        wire.hang_up()
        await wire.gone()

    return say


async def test_fifty_clients_pass_at_once(tmp_path: Path) -> None:
    async with ScriptedServer(easy(scripted.stand)) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path) as tap:
            clients = await asyncio.gather(*(logged_in(tap.port) for _ in range(50)))
            for client in clients:
                client.send("<iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq>")
            await asyncio.gather(*(client.sees("id='last'") for client in clients))
            for client in clients:
                client.send("</stream:stream>")
                client.writer.close()
    assert tap.names() == []
    assert len(tap.witness.capture.streams) == 50
    sessions = {json.loads(line)["connection"] for line in _lines(tap)}
    assert len(sessions) == 50


def _lines(tap: Tap) -> list[str]:
    assert tap.record.path is not None
    return tap.record.path.read_text("utf-8").splitlines()


HOSTILE = [
    "<message><body>\x0b</body></message>",
    "<message><!-- x --></message>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>",
    "<message></presence>",
    "<message" + " a='b'" * 50_000 + "/>",
    "<a>" * 2_000 + "</a>" * 2_000,
    "<message xmlns:a='" + "n" * 100_000 + "'/>",
    "\x15\x03\x03\x00\x02\x02\x50",
    "<message to='" + "<" * 1_000 + "'/>",
    "no XML at all",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda xml: repr(xml[:30]))
async def test_what_one_side_sends_reaches_the_other_as_it_came_however_bad(
    hostile: str, tmp_path: Path
) -> None:
    async def listen(wire: Wire) -> None:
        wire.send(hostile)
        while not wire.heard.endswith(hostile.encode() + b"<end/>"):
            await wire.hello()
        wire.send("<end/>")
        await wire.gone()

    async with ScriptedServer(easy(listen)) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path) as tap:
            client = await logged_in(tap.port)
            client.send(hostile + "<end/>")
            got = await client.sees("<end/>")
            assert got.endswith(hostile.encode() + b"<end/>")
            client.writer.close()
    assert "Traceback" not in str(tap.shown)


async def test_an_absence_is_found_thoughnothing_else_comes(tmp_path: Path) -> None:
    now = 1_000_000.0
    async with ScriptedServer(
        easy(
            scripted.saying(
                "<iq from='localhost' type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
        )
    ) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path, clock=lambda: now) as tap:
            client = await logged_in(tap.port)
            await client.sees("ping")
            tap.witness.pause()
            assert tap.names() == []
            now += 9.9
            tap.witness.pause()
            assert tap.names() == []
            now += 0.1
            tap.witness.pause()
            assert tap.names() == ["unanswered asks"]
            client.writer.close()


async def test_with_a_command_only_what_begins_with_it_must_be_answered(tmp_path: Path) -> None:
    now = 1_000_000.0
    words = scripted.said("Ann", "bot: hi", "a") + scripted.said("Ann", "ask bot now", "b")
    async with ScriptedServer(easy(scripted.saying(words))) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path, clock=lambda: now, command="ask ") as tap:
            client = await logged_in(tap.port)
            await client.sees("ask bot now")
            now += 11
            tap.witness.pause()
            client.writer.close()
    assert tap.names() == ["silent silent"]
    assert "ask bot now" in tap.shown[0].message


async def test_nothing_is_missed_on_a_connection_that_is_over(tmp_path: Path) -> None:
    now = 1_000_000.0
    ping = "<iq from='localhost' type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>"
    async with ScriptedServer(easy(scripted.saying(ping))) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path, clock=lambda: now) as tap:
            client = await logged_in(tap.port)
            await client.sees("ping")
            tap.witness.end("1", None)
            now += 11
            tap.witness.pause()
            client.writer.close()
    assert tap.names() == []


OPEN = ((STREAM, "</stream:features>"),)
LOG_IN = ("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>", "")
BEGIN_TLS = ("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", "")


@pytest.mark.parametrize(
    ("server_says", "client_says", "words"),
    [
        ("", [(STREAM, "")], "stream header in 11 s"),
        (scripted.HEADER, [(STREAM, "id='lie'")], "stream header in 11 s"),
        (offering(scripted.STARTTLS), [*OPEN, BEGIN_TLS], "starttls in 11 s"),
        (offering(scripted.mechanisms("PLAIN")), [*OPEN, LOG_IN], "auth in 11 s"),
    ],
    ids=["header", "features", "STARTTLS", "login"],
)
async def test_a_server_that_goes_silent_is_named_with_the_step_while_the_bot_waits(
    server_says: str, client_says: list[tuple[str, str]], words: str, tmp_path: Path
) -> None:
    now = 1_000_000.0

    async def say(wire: Wire) -> None:
        await wire.header()
        wire.send(server_says)
        await wire.gone()

    async with ScriptedServer(plain(login=say)) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path, clock=lambda: now) as tap:
            client = await Client.at(tap.port)
            for xml, answer in client_says:
                client.send(xml)
                await client.sees(answer)
            async with asyncio.timeout(SECONDS):
                while client_says[-1][0].encode() not in server.heard:  # noqa: ASYNC110 - it passes
                    await asyncio.sleep(0.01)
            now += 11
            for _ in range(2):
                tap.witness.pause()
            assert tap.names() == [tap.names()[0]]
            assert (tap.shown[0].name, words in tap.shown[0].message) == ("ended", True)
            assert "times in all" not in str(tap.witness.capture.streams[0].findings())
            client.writer.close()


async def test_a_session_is_resumed_across_a_cut(
    prosody_process: ServerProcess, tmp_path: Path
) -> None:
    settings = settings_of(prosody_process.server.environment())
    async with tapped(settings, tmp_path) as tap:
        first = await inside(tap, settings)
        first._stream.abort()  # noqa: SLF001 - as the network does
        await first.ended
        second = bot(behind(tap, settings))
        assert (await second.open(first.management)).resumed
        second.leave()
        second.close()
    assert tap.names() == []


async def test_a_cut_is_named_as_it_happens_and_no_error_once_the_session_is_resumed(
    prosody_process: ServerProcess, tmp_path: Path
) -> None:
    settings = settings_of(prosody_process.server.environment())
    assert settings.service is not None
    async with Relay(settings.service.host, settings.service.port) as network:
        settings = settings._replace(service=Service("xmpp", "127.0.0.1", network.port))
        async with tapped(settings, tmp_path) as tap:
            first = await inside(tap, settings)
            network.cut()
            await first.ended
            assert tap.names() == ["ended dropped"]
            second = bot(behind(tap, settings))
            assert (await second.open(first.management)).resumed
            second.leave()
            second.close()
        assert not any(each.has_error() for each in tap.witness.capture.streams)
    assert tap.names() == ["ended dropped"]


async def test_a_server_that_is_killed_is_named_and_the_bot_comes_back(
    prosody_process: ServerProcess, tmp_path: Path
) -> None:
    settings = settings_of(prosody_process.server.environment())
    async with tapped(settings, tmp_path) as tap:
        first = await inside(tap, settings)
        await asyncio.to_thread(prosody_process.kill)
        await first.ended
        await asyncio.to_thread(prosody_process.start)
        second = await inside(tap, settings)
        second.leave()
        second.close()
    assert tap.names() == ["ended dropped"]


async def test_what_was_said_at_the_end_is_still_read(tmp_path: Path) -> None:
    assert GRACE_SECONDS < 1
    async with ScriptedServer(easy(scripted.stand)) as server:
        settings = settings_for(server)
        async with tapped(settings, tmp_path) as tap:
            client = await logged_in(tap.port)
            client.send(
                "<message type='groupchat' to='room@conference.localhost'><body>a</body>"
                "</message></stream:stream>"
            )
            await client.writer.drain()
            client.writer.close()
    assert tap.names() == ["join never-joined"]


async def test_what_a_server_said_before_it_cut_the_connection_reaches_the_bot() -> None:
    loop, came, cut = asyncio.get_running_loop(), bytearray(), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        up = Side(came.extend, lambda was_cut: cut.set())
        up.other = up
        await loop.create_connection(lambda: up, sock=sock)
        up.write(b"<message>")
        peer, _ = server.accept()
        peer.sendall(b"</stream:stream>")
        peer.close()  # it has not read all, so the system resets the connection
        up.write(b"</message>")
        async with asyncio.timeout(SECONDS):
            await cut.wait()
    assert came == b"</stream:stream>"


async def test_the_size_of_a_stanza_in_whose_midst_the_server_ends_the_stream_is_named(
    tmp_path: Path,
) -> None:
    async def refuse(wire: Wire) -> None:
        while len(wire.heard) <= MAX_HELD_BYTES:
            await wire.hello()
        wire.send(scripted.stream_error("policy-violation"))
        wire.hang_up()

    async with (
        ScriptedServer(easy(refuse)) as server,
        tapped(settings_for(server), tmp_path) as tap,
    ):
        client = await logged_in(tap.port)
        client.send(f"<message to='r@c'><body>{'x' * 2 * MAX_HELD_BYTES}")
        await client.gone()
    assert tap.names() == ["ended too-big"]
    assert re.search(r"latest stanza has at least [0-9]{6} bytes", tap.shown[-1].message)


async def test_a_stanza_that_waits_for_a_slow_server_is_not_unfinished(tmp_path: Path) -> None:
    said = f"<message to='r@c' type='chat'><body>{'x' * 99_999}</body></message>"
    reads = asyncio.Event()

    async def wait(wire: Wire) -> None:
        await reads.wait()
        await wire.gone()

    now = 1_000_000.0
    async with (
        ScriptedServer(easy(wait)) as server,
        tapped(settings_for(server), tmp_path, clock=lambda: now) as tap,
    ):
        client = await logged_in(tap.port)
        client.send(said * 160)
        unsent, rests = 0, 0
        async with asyncio.timeout(SECONDS):
            while rests < RESTS:  # until nothing goes on
                await asyncio.sleep(0.01)
                before, unsent = unsent, client.writer.transport.get_write_buffer_size()
                rests = rests + 1 if unsent == before else 0
        assert unsent > 0
        now += UNFINISHED_SECONDS + 1
        tap.witness.pause()
        reads.set()
        client.writer.transport.abort()
    assert tap.names() == []


# Components (XEP-0114).

GATE = "xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'"
JOIN = (
    "<presence from='ann@gate.localhost' to='r@conference.localhost/Ann'>"
    "<x xmlns='http://jabber.org/protocol/muc'/></presence>"
)
SPEAKS = (
    "<message from='bob@gate.localhost' to='r@conference.localhost' type='groupchat'>"
    "<body>a</body></message>"
)
KICKED = (
    "<presence type='unavailable' from='r@conference.localhost/Ann' to='ann@gate.localhost'>"
    "<x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none' role='none'/>"
    "<status code='110'/><status code='307'/></x></presence>"
)


@pytest.mark.parametrize(
    ("server_says", "client_says", "name"),
    [
        (scripted.stream_error("not-authorized"), "", "login secret"),
        (f"<handshake/>{scripted.stream_error('invalid-from')}", "", "ended error"),
        ("<handshake/>", SPEAKS, "join never-joined"),
        ("<handshake/>", JOIN + SPEAKS, "join never-joined"),
        ("<handshake/>", JOIN, "removed put-out"),
    ],
    ids=["secret", "address", "speaks outside", "another puppet is inside", "put out"],
)
async def test_each_wrong_of_a_component_is_named(
    server_says: str, client_says: str, name: str, tmp_path: Path
) -> None:
    async def serve(wire: Wire) -> None:
        await wire.header()
        wire.send(f"<stream:stream {GATE} from='gate.localhost' id='i'>")
        await wire.element("handshake")
        wire.send(server_says)
        await wire.element("presence", "message")
        wire.send(KICKED)
        await wire.gone()

    async with ScriptedServer(replace(HONEST, authenticate=serve)) as server:
        settings = settings_for(server)._replace(domain="gate.localhost", allow_plaintext=False)
        async with tapped(settings, tmp_path, component=True) as tap:
            client = await Client.at(tap.port)
            client.send(f"<stream:stream {GATE} to='gate.localhost'>")
            await client.sees("id='i'>")
            client.send("<handshake>0123456789</handshake>")
            await client.sees("<handshake/>" if client_says else "error>")
            client.send(client_says)
            await tap.shows(name.partition(" ")[0])
            client.writer.close()
    assert name in tap.names()
    (stream,) = tap.witness.capture.streams
    assert stream.stream.client.account == "gate.localhost"
    assert tap.record.path is not None
    assert tap.record.path.name == "gate.localhost.jsonl"
    assert "0123456789" not in tap.record.path.read_text("utf-8")


@pytest.mark.parametrize(
    ("namespace", "condition"),
    [("jabber:client", "invalid-namespace"), ("jabber:component:accept", "host-unknown")],
)
async def test_a_component_with_a_wrong_namespace_or_name_is_told_by_its_server(
    namespace: str, condition: str, tmp_path: Path
) -> None:
    async def refuse(wire: Wire) -> None:
        await wire.header()
        wire.send(f"<stream:stream {GATE} from='gate.localhost' id='i'>")
        wire.send(scripted.stream_error(condition))
        await wire.gone()

    async with ScriptedServer(replace(HONEST, authenticate=refuse)) as server:
        settings = settings_for(server)._replace(domain="gate.localhost", allow_plaintext=False)
        async with tapped(settings, tmp_path, component=True) as tap:
            client = await Client.at(tap.port)
            client.send(
                f"<stream:stream {GATE} to='gate.localhost'>".replace(
                    "jabber:component:accept", namespace
                )
            )
            await client.sees("</stream:stream>")
            shown = await tap.shows("ended")
            client.writer.close()
    assert (shown.cause, tap.names()) == ("error", ["ended error"])
    assert condition in shown.message or "gate.localhost" in shown.message
