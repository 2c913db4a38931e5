"""What a check says of the mistakes that people make: the names, numbers and variables in it."""

from pathlib import Path

import pytest

from bridge.xmpp.checks.report import Report
from tests.faults.scene import configure
from tests.servers.certificates import Authority
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.xmpp.probing import check

MISTAKES: dict[str, tuple[str, str, str, str]] = {
    "no certificate in the file": ("XMPP_TLS_CA_FILE", "{folder}/text.pem", "{} PEM", "MUC_ROOM"),
    "a certificate that did not sign": ("XMPP_TLS_CA_FILE", "{folder}/ca.pem", "{}", "PEM"),
    "the server for its room service": (
        *("MUC_ROOM", "room@{domain}", '"{muc}" {domain}', "MCP_BOT_NICKNAME"),
    ),
    "a room service that is not there": (
        *("MUC_ROOM", "room@rooms.{domain}", '"{muc}" rooms.{domain}', "MCP_BOT_NICKNAME"),
    ),
    "a character in the nickname": (
        *("MCP_BOT_NICKNAME", "Mcp\ufffcDebug", "U+FFFC OBJECT REPLACEMENT", "MUC_ROOM"),
    ),
    "a character in the room": (
        *("MUC_ROOM", "ro\ufffcom@{muc}", "U+FFFC OBJECT REPLACEMENT", "MCP_BOT_NICKNAME"),
    ),
}
"""A variable and its value, words that the outcome has beside its name, and one that it has not."""


def words(report: Report) -> str:
    return f"{report.diagnosis} {report.phases[-1].hint}"


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_the_outcome_names_what_is_wrong_and_nothing_else(
    real_server: XmppServer, tmp_path: Path, mistake: str
) -> None:
    Authority(tmp_path)
    (tmp_path / "text.pem").write_text("no certificate", "utf-8")
    place = {"folder": tmp_path, "domain": real_server.domain, "muc": real_server.muc}
    name, value, named, unnamed = MISTAKES[mistake]
    chosen = value.format(**place)
    report = await check(real_server.environment() | {name: chosen})
    assert not report.ok
    told = words(report)
    assert [it for it in (name, *named.format(chosen, **place).split()) if it not in told] == []
    assert unnamed not in told


async def test_a_missing_room_password_is_told_from_a_wrong_one(real_server: XmppServer) -> None:
    room = real_server.room()
    told = []
    async with Witness(real_server, real_server.witness, room, "Wilma") as wilma:
        await configure(wilma, passwordprotectedroom="1", roomsecret="sesame")
        for password in (None, "not-sesame", "sesame"):
            environment = real_server.environment(MUC_ROOM=room, MUC_PASSWORD=password)
            told.append(words(await check(environment)))
    missing, wrong, right = told
    assert [("MUC_PASSWORD" in it, room in it) for it in told] == [(True, True)] * 2 + [
        (False, True)
    ]
    assert ("not set" in missing, "not set" in wrong) == (True, False)
    assert "Everything works" in right
