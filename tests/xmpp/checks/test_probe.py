"""The check against real servers, and against one that misbehaves where they do not."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from bridge.xmpp.checks import probe
from bridge.xmpp.checks.probe import (
    MAX_DETAIL_CHARACTERS,
    MAX_NAMED_OCCUPANTS,
    MESSAGE,
    StageRecorder,
)
from bridge.xmpp.checks.report import CONNECTION_STAGES, ROOM_STAGES, CheckStage, Report
from bridge.xmpp.muc import roomservice
from tests.faults import scripted_server as scripted
from tests.faults.scene import configure
from tests.faults.scripted_server import HONEST, Script, ScriptedServer, Wire
from tests.servers.certificates import Authority
from tests.servers.process import DOMAIN
from tests.servers.server import Endpoint, XmppServer
from tests.servers.witness import Witness
from tests.xmpp.probing import check, detail, failed, names, settings

STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"
CHECK_STAGES = [*CONNECTION_STAGES, *ROOM_STAGES]


async def test_a_way_that_works_passes_every_stage(endpoint: Endpoint) -> None:
    environment = endpoint.environment()
    report = await check(environment, send=True)
    assert names(report) == CHECK_STAGES
    assert report.ok
    assert sum(each.ms for each in report.phases) <= report.ms
    assert environment["XMPP_SERVICE"] in detail(report, "resolve")
    assert detail(report, "connect").endswith(": connected")
    assert "offered: " in detail(report, "sasl")
    assert "chosen: SCRAM-SHA-" in detail(report, "sasl")
    assert f"{endpoint.server.bot.jid}/xmpp-debug-bridge.check." in detail(report, "bind")
    real = endpoint.transport != "plaintext"
    managed = "stream management with resumption" if real else "no stream management"
    assert managed in detail(report, "bind")
    told = detail(report, "tls")
    if not real:
        assert "no TLS" in told
    else:
        assert told.startswith('TLSv1.3, TLS_AES_256_GCM_SHA384; certificate of "trustme')
        assert 'issued by "trustme' in told
        assert 'names: "localhost", "conference.localhost"' in told
        assert "(364 days left)" in told


async def test_a_room_that_was_not_there_is_told_and_not_left_over(xmpp_server: XmppServer) -> None:
    environment = xmpp_server.environment()
    room = environment["MUC_ROOM"]
    report = await check(environment, must_exist=True)
    assert "MUC_ROOM" in failed(report, "disco").hint
    assert (report.condition, report.created) == ("item-not-found", ())
    assert room in report.diagnosis
    report = await check(environment)
    assert names(report) == [name for name in CHECK_STAGES if name != "send"]
    assert "does not exist yet" in detail(report, "disco")
    assert report.created
    assert "MUC_ROOM" in next(each.hint for each in report.phases if each.name == "join")
    assert report.diagnosis.startswith("Everything works: in the room ")
    assert "did not exist before" in report.diagnosis
    async with Witness(xmpp_server, xmpp_server.witness, room, "Wilma") as wilma:
        assert wilma.created
        assert (await check(environment, must_exist=True)).ok
        wilma.say("the end")  # it sends only when it is told to
        assert (await wilma.heard(lambda each: True)).body == "the end"


async def test_others_see_it_come_under_its_own_name_speak_and_go(xmpp_server: XmppServer) -> None:
    environment = xmpp_server.environment(MCP_BOT_NICKNAME="Beetle")
    room = environment["MUC_ROOM"]
    async with Witness(xmpp_server, xmpp_server.witness, room, "Wilma") as wilma:
        report = await check(environment, send=True)
        said = await wilma.heard(MESSAGE)
        assert said.nick.startswith("Beetle-check-")
        await wilma.left(said.nick)
    assert not report.created
    assert "exists" in detail(report, "disco")
    assert detail(report, "occupants") == '1 besides us: "Wilma"'
    assert detail(report, "send") == "the room sent the message back"
    assert f"in the room {room} with 1 other occupant, " in report.diagnosis


async def test_checks_that_are_off_are_told_of_where_they_would_be(prosody: XmppServer) -> None:
    report = await check(
        prosody.environment(XMPP_TLS_CA_FILE=None, NODE_TLS_REJECT_UNAUTHORIZED="0")
    )
    assert report.ok
    (tls,) = (each for each in report.phases if each.name == "tls")
    assert "NODE_TLS_REJECT_UNAUTHORIZED" in tls.hint
    assert "days left" in tls.detail
    # Prosody 0.12 offers no channel binding over TLS 1.3, Prosody 13 only `tls-exporter`.
    unique = prosody.version >= (13,)
    assert ("bound to TLS by tls-unique" in detail(report, "sasl")) is unique


async def test_what_is_offered_to_a_client_that_names_its_account_is_shown(
    real_server: XmppServer,
) -> None:
    report = await check(real_server.environment())
    assert report.ok
    # ejabberd offers these from 24.12 on.
    newer = real_server.name == "ejabberd" and real_server.version >= (24, 12)
    offered = [name for name in ("SASL2", "Bind 2", "FAST") if name in detail(report, "sasl")]
    assert offered == ["SASL2", "Bind 2", "FAST"] * newer


@pytest.mark.parametrize("slip", ["the name", "the domain"])
async def test_the_room_that_may_be_meant_is_named(real_server: XmppServer, slip: str) -> None:
    meant = real_server.room()
    domain = real_server.domain if slip == "the domain" else real_server.muc
    async with Witness(real_server, real_server.witness, meant, "Wilma") as wilma:
        await configure(wilma, publicroom="1")
        misspelt = f"x{meant.partition('@')[0]}@{domain}"
        report = await check(real_server.environment(MUC_ROOM=misspelt))
    assert report.ok is (slip == "the name")
    assert report.candidates == (meant,)
    assert f'Rooms with similar names: "{meant}".' in report.diagnosis


def answering(
    disco: str = "<feature-not-implemented/>",
    *others: str,
    confirms: bool = True,
    refuses: str = "",
    returns: str = "",
) -> Script:
    """A room that refuses disco so, has these people in it, and answers us or our message so."""

    async def join(wire: Wire) -> None:
        us = ""
        while True:
            element = await wire.element()
            id_, to = element.get("id", ""), element.get("to", "")
            match scripted.local(element), element.get("type"):
                case "iq", _:
                    cause = disco.replace("/>", f" xmlns='{STANZA_ERRORS}'/>")
                    if cause:
                        error = f"<error type='cancel'>{cause}</error>"
                        wire.send(f"<iq type='error' id='{id_}' from='{to}'>{error}</iq>")
                case "presence", "unavailable":
                    if confirms:
                        user = f"<x xmlns='{scripted.MUC_USER}'><status code='110'/></x>"
                        wire.send(f"<presence type='unavailable' from='{to}'>{user}</presence>")
                case "presence", _:
                    us = to
                    here = "".join(scripted.present(each) for each in others)
                    here += scripted.present(to.partition("/")[2], 110)
                    wire.send(refuses.format(us=us) or here)
                case "message", _:
                    wire.send(returns.format(us=us))
                case _:
                    raise AssertionError(element)

    return replace(HONEST, join=join)


async def checked(script: Script, *, send: bool = False) -> Report:
    async with ScriptedServer(script) as server:
        return await check(server.environment(), send=send)


@pytest.mark.parametrize(
    ("error", "told"), [("<feature-not-implemented/>", "(feature-not-implemented)"), ("", "")]
)
async def test_a_room_service_that_answers_no_disco_does_not_keep_from_joining(
    error: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roomservice, "DISCO_SECONDS", 0.1)
    report = await checked(answering(error))
    assert report.ok
    assert told in detail(report, "disco")
    assert "joining will show" in detail(report, "disco")


async def test_names_of_strangers_stand_escaped_in_one_line_and_many_are_counted() -> None:
    report = await checked(answering("<forbidden/>", "W\u115filma", "Fred"))
    assert detail(report, "occupants") == (
        '2 besides us: "W\\u{115F}ilma" (U+115F HANGUL CHOSEONG FILLER), "Fred"'
    )
    crowd = [f"n{number}" for number in range(MAX_NAMED_OCCUPANTS)]
    told = detail(await checked(answering("<forbidden/>", *crowd)), "occupants")
    assert told.endswith(f'{MAX_NAMED_OCCUPANTS - 1}"')
    told = detail(await checked(answering("<forbidden/>", *crowd, "last")), "occupants")
    assert told.startswith(f"{MAX_NAMED_OCCUPANTS + 1} besides us")
    assert told.endswith(f'"n{MAX_NAMED_OCCUPANTS - 1}" and 1 more')


@pytest.mark.parametrize("extra", [0, 1])
def test_a_detail_has_a_bound_whatever_is_in_it(extra: int) -> None:
    reports: list[CheckStage] = []
    recorder = StageRecorder(reports.append)
    recorder.begin("tls")
    recorder.add_finding("x" * (MAX_DETAIL_CHARACTERS + extra))
    recorder.end()
    cut = f"... ({MAX_DETAIL_CHARACTERS + 1} characters)"
    assert reports[0].detail == "x" * MAX_DETAIL_CHARACTERS + cut * extra


async def test_a_message_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "REFLECTION_SECONDS", 0.1)
    report = await checked(answering(), send=True)
    assert "timeoutSeconds" not in failed(report, "send").hint


async def test_a_room_that_confirms_no_leaving_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LEAVE_SECONDS", 0.1)
    report = await checked(answering(confirms=False))
    assert "did not confirm" in failed(report, "leave").detail


async def test_being_put_out_meanwhile_is_told() -> None:
    codes = "<status code='110'/><status code='307'/>"
    out = f"<x xmlns='{scripted.MUC_USER}'><item role='none'/>{codes}</x>"
    kick = f"<presence type='unavailable' from='{{us}}'>{out}</presence>"
    report = await checked(answering(returns=kick), send=True)
    assert "kicked" in failed(report, "send").detail


async def test_a_nickname_that_the_room_refuses_may_be_only_ours() -> None:
    error = f"<error type='cancel'><not-acceptable xmlns='{STANZA_ERRORS}'/></error>"
    refusal = f"<presence type='error' from='{{us}}'>{error}</presence>"
    report = await checked(answering(refuses=refusal))
    assert "MCP_BOT_NICKNAME" in failed(report, "join").hint


async def test_the_longest_nickname_leaves_room_for_its_mark() -> None:
    async with ScriptedServer(answering()) as server:
        report = await check(server.environment(MCP_BOT_NICKNAME="ä" * 511))
    assert report.ok
    assert b"-check-" in server.heard


async def test_the_second_look_at_it_names_nobody(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path).issue_expired(DOMAIN)
    for direct_tls in (False, True):
        async with ScriptedServer(certificate=stranger, direct_tls=direct_tls) as server:
            trusting = server.environment(XMPP_TLS_CA_FILE=str(authority.ca_file))
            report = await check(trusting)
            # Of direct TLS the server's side begins after the handshake, so only of the second.
            assert len(server.wires) == (1 if direct_tls else 2)
            assert b"<auth" not in server.heard
            assert b"<iq" not in server.heard
        told = failed(report, "tls")
        assert 'certificate of "trustme' in told.detail
        assert 'issued by "trustme' in told.detail
        assert f'names: "{DOMAIN}' in told.detail
        assert "(1 day ago)" in told.detail
        assert told.hint == "Renew the server's certificate, or set this machine's clock." or (
            "XMPP_TLS_CA_FILE" in told.hint and "expired, too" in told.hint
        )


async def test_a_check_ends_in_time_at_whatever_step_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "CHECK_SECONDS", 3.0)

    async def silent(wire: Wire) -> None:
        await wire.gone()

    async def given_up_at(step: str, script: Script) -> None:
        async with ScriptedServer(script) as server:
            started = monotonic()
            report = await probe.probe(settings(server.environment()))
            assert monotonic() - started < 9.0
        assert "given up after 3 s" in failed(report, step).detail

    await asyncio.gather(
        given_up_at("tls", replace(HONEST, authenticate=silent)),
        given_up_at("bind", replace(HONEST, bind=silent)),
        given_up_at("disco", replace(HONEST, join=silent)),
    )
