"""Real bots, on two libraries and each server: each does each wrong, and its log is explained."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bridge.capture.capture import verdict
from bridge.capture.finding import Finding, Severity
from tests.capture.deeds import DEEDS, SERVERS
from tests.capture.logs import examined
from tests.capture.stage import SLIXMPP, Stage, secured_sandbox, staged
from tests.conftest import SERVERS as INSTALL
from tests.prerequisites import do_without, npm_packages
from tests.servers.certificates import Authority
from tests.servers.ejabberd import missing_ejabberd, running_debugged_ejabberd
from tests.servers.process import ServerProcess
from tests.servers.prosody import missing_prosody, running_debugged_prosody

BOTS = Path(__file__).parent / "bots"
RUNNING = {
    "prosody": (missing_prosody, running_debugged_prosody),
    "ejabberd": (missing_ejabberd, running_debugged_ejabberd),
}


@pytest.fixture(scope="module", params=SERVERS)
def debugged(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess | None]:
    """Prosody and ejabberd, with every stanza in their logs, and None for the sandbox."""
    if request.param == "sandbox":
        yield None
        return
    missing, running = RUNNING[request.param]
    if (program := missing()) is not None:
        do_without(f"{program} is not installed: {INSTALL}")
    folder = tmp_path_factory.mktemp(request.param)
    with running(folder, authority) as process:
        yield process


def command(library: str) -> tuple[str, ...]:
    """How to start a bot on this library."""
    if library == "slixmpp":
        return SLIXMPP
    os.environ["NODE_MODULES"] = str(npm_packages())
    return ("node", str(BOTS / "xmppjs_bot.mjs"))


@asynccontextmanager
async def stage_of(library: str, process: ServerProcess | None) -> AsyncIterator[Stage]:
    """A bot on this library, at a server, or at the sandbox."""
    async with AsyncExitStack() as stack:
        server, streams = (
            (process.server, [])
            if process is not None
            else await stack.enter_async_context(secured_sandbox())
        )
        yield await stack.enter_async_context(staged(server, command(library), streams))


def found_in(lines: list[str]) -> list[Finding]:
    """What is wrong on the streams of a log."""
    every = [finding for stream in examined(*lines) for finding in stream.findings()]
    return [finding for finding in every if finding.severity is not Severity.NOTE]


@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js"])
async def test_each_wrong_of_a_real_bot_is_named(
    library: str, debugged: ServerProcess | None
) -> None:
    unexplained = {}
    async with stage_of(library, debugged) as stage:
        for name, deed in DEEDS.items():
            if stage.server.name not in deed.on or library in deed.without:
                continue
            lines = await stage.do(deed)
            findings = found_in(lines)
            told = [f.message + f.hint for f in findings if f.name == deed.rule]
            if not any(deed.words in each for each in told):
                unexplained[name] = (verdict(findings), findings, lines)
    assert unexplained == {}, "\n".join(str(each) for each in unexplained.items())
