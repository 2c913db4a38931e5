"""Real bots on two libraries, on real servers: each does each wrong, and the log is explained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.capture.capture import Examined
from bridge.capture.finding import Severity
from tests.capture.logs import examined
from tests.prerequisites import do_without
from tests.servers.server import XmppServer

BOTS = Path(__file__).parent / "bots"

DEEDS = {
    "healthy": None,
    "chat to a room": ("refused", "with type groupchat"),
    "groupchat to an occupant": ("refused", "bare JID"),
    "unknown host": ("refused", "nobody@nowhere.invalid"),
    "negative priority": ("session", '"-1"'),
    "never joined": ("join", "never asked"),
    "no nickname": ("join", "without a nickname"),
    "wrong password": ("login", "user name and password"),
    "forbidden character": ("ended", "XML cannot have"),
}
"""What each deed is explained by: a finding, and a part of its sentences."""


def command(library: str) -> list[str]:
    """How to start the bot, and what it needs."""
    if library == "slixmpp":
        return [sys.executable, str(BOTS / "slixmpp_bot.py")]
    if (agents := os.environ.get("AGENT_CLIENTS")) is None:
        do_without("AGENT_CLIENTS names no folder with npm's packages")
    os.environ["NODE_MODULES"] = str(Path(agents).parent)
    return ["node", str(BOTS / "xmppjs_bot.mjs")]


def log_of(library: str, server: XmppServer) -> list[Examined]:
    """The streams in the log of a bot that does every deed."""
    environment = server.environment(MUC_ROOM=server.room())
    assert server.ca_file is not None
    trust = {"NODE_EXTRA_CA_CERTS": str(server.ca_file)}
    ran = subprocess.run(
        [*command(library), *DEEDS],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment, **trust},
    )
    return examined(*ran.stderr.split("\n"))


@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js"])
def test_each_wrong_of_a_real_bot_is_named(library: str, real_server: XmppServer) -> None:
    streams = log_of(library, real_server)
    findings = [
        [one for one in stream.findings() if one.severity is not Severity.NOTE]
        for stream in streams
    ]
    assert len(streams) == len(DEEDS)
    for (deed, told), found in zip(DEEDS.items(), findings, strict=True):
        if told is None:
            assert found == [], deed
        else:
            name, words = told
            assert [one for one in found if one.name == name and words in one.message + one.hint], (
                deed,
                found,
            )
