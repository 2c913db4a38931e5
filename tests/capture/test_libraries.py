"""Real bots on real libraries, at each server: they do each wrong, and their logs are explained."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from bridge.capture.finding import Finding, Severity
from bridge.capture.verdict import verdict
from tests.capture.deeds import DEEDS, SERVERS, Deed
from tests.capture.logs import ACCOUNT, ROOM, examined
from tests.capture.program import SECONDS
from tests.capture.stage import SLIXMPP, Stage, secured_sandbox, staged
from tests.capture.test_injection import FORGED
from tests.conftest import ROOT
from tests.conftest import SERVERS as INSTALL
from tests.servers.certificates import Authority
from tests.servers.ejabberd import missing_ejabberd, running_debugged_ejabberd
from tests.servers.process import ServerProcess
from tests.servers.prosody import missing_prosody, running_debugged_prosody
from tests.support.prerequisites import do_without, npm_packages

pytestmark = pytest.mark.servers

BOTS = Path(__file__).parent / "bots"
PYTHON = ROOT / "build" / "libraries" / "bin" / "python"
"""A Python with aioxmpp and SleekXMPP."""

INSIDE = (
    *("a negative priority", "never joined", "a nickname that is taken", "kicked"),
    *("chat to a room", "silent", "answered in private"),
)
OTHERS = {
    "aioxmpp": INSIDE,
    # Each of its streams takes a second to end.
    "SleekXMPP": ("never joined", "kicked", "silent", "a forbidden character", "TLS not begun"),
    "libstrophe": (*INSIDE, "a wrong password", "a forbidden character", "TLS not begun"),
    "Profanity": (*INSIDE, "a wrong password"),
}
"""The other libraries, and a deed for each rule that a bot on it can be made to break."""

TOLD_BY_SERVERS = frozenset(
    ("ended", "tls", "login", "session", "join", "removed", "refused", "misplaced")
)
"""The rules by which the logs of servers are explained, too; the others need a clock of ours."""

ATTEMPTS = 5
"""How often a bot may do a wrong until it is named, or right until nothing is: what its library and
the server send at the same time may stand in another order in its log."""

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


def command(library: str, folder: Path) -> tuple[str, ...]:
    match library:
        case "xmpp.js":
            os.environ["NODE_MODULES"] = str(npm_packages())
            return ("node", str(BOTS / "xmppjs_bot.mjs"))
        case "aioxmpp" | "SleekXMPP":
            if not PYTHON.exists():
                do_without(f"{PYTHON} is not there: .ci/run makes it")
            former = f"PYTHONPATH={BOTS / 'former'}"
            return ("env", former, str(PYTHON), str(BOTS / f"{library.lower()}_bot.py"))
        case "libstrophe":
            bot = folder / "libstrophe_bot"
            source = str(BOTS / "libstrophe_bot.c")
            try:
                subprocess.run(["gcc", "-Wall", "-o", bot, source, "-lstrophe"], check=True)
            except (OSError, subprocess.CalledProcessError):
                do_without("libstrophe: sudo apt-get install gcc libc6-dev libstrophe-dev")
            return (str(bot),)
        case "Profanity":
            if shutil.which("profanity") is None:
                do_without("Profanity: sudo apt-get install profanity-light")
            return (sys.executable, str(BOTS / "profanity_bot.py"))
    return SLIXMPP


@asynccontextmanager
async def stage_of(
    library: str, process: ServerProcess | None, folder: Path
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        server, streams = (
            (process.server, [])
            if process is not None
            else await stack.enter_async_context(secured_sandbox())
        )
        yield await stack.enter_async_context(staged(server, command(library, folder), streams))


def found_in(lines: list[str]) -> list[Finding]:
    """What is wrong on the streams of a log."""
    every = [finding for stream in examined(*lines) for finding in stream.findings()]
    return [finding for finding in every if finding.severity is not Severity.NOTE]


def _rules_in(log: Path) -> set[str]:
    return {finding.name for finding in found_in(log.read_text("utf-8").split("\n"))}


async def unexplained(stage: Stage, deeds: Mapping[str, Deed]) -> str:
    """What is not named in the log of the bot that did it, with the log."""
    missing = []
    for name, deed in deeds.items():
        is_right = False
        for _ in range(ATTEMPTS):
            try:
                lines = await stage.do(deed)
            except TimeoutError as error:  # xmpp.js may connect once more by itself
                findings, lines = [], [str(error)]
                continue
            findings = found_in(lines)
            told = [f.message + f.hint for f in findings if f.name == deed.rule]
            is_right = any(deed.words in each for each in told) if deed.rule else not findings
            if is_right:
                break
        if not is_right:
            missing.append("\n".join([name, verdict(findings), str(findings), *lines]))
    return "\n\n".join(missing)


def _is_seen_elsewhere(deed: Deed, library: str, server: str) -> bool:
    """Whether the other library does this on this server, and the library does it on another.

    slixmpp does each on the real servers, xmpp.js on the sandbox. A right deed of xmpp.js counts so
    on ejabberd alone: on a busy machine it connects to it once more by itself, in tries without an
    end. `.ci/long` plays all.
    """
    other = "xmpp.js" if library == "slixmpp" else "slixmpp"
    if other in deed.without:
        return False
    if library == "slixmpp":
        return server == "sandbox" and "prosody" in deed.on
    if server == "ejabberd" and not {"sandbox", "prosody"}.isdisjoint(deed.on):
        return True
    return bool(deed.rule) and server != "sandbox" and "sandbox" in deed.on


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["new", "every"]
)
@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js"])
async def test_each_wrong_of_a_real_bot_is_named_and_nothing_in_its_healthy_hour(
    library: str, every: bool, debugged: ServerProcess | None, tmp_path: Path
) -> None:
    async with stage_of(library, debugged, tmp_path) as stage:
        deeds = {
            name: deed
            for name, deed in DEEDS.items()
            if stage.server.name in deed.on and library not in deed.without
            if every or not _is_seen_elsewhere(deed, library, stage.server.name)
        }
        assert await unexplained(stage, deeds) == ""
    if debugged is not None and library == "slixmpp":
        log = debugged.directory / f"{debugged.server.name}.log"
        async with asyncio.timeout(SECONDS):
            while not _rules_in(log) >= TOLD_BY_SERVERS:  # noqa: ASYNC110 - a file tells of nothing
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("library", OTHERS)
async def test_a_wrong_of_each_kind_is_named_in_the_log_of_any_library(
    library: str, tmp_path: Path
) -> None:
    async with stage_of(library, None, tmp_path) as stage:
        assert await unexplained(stage, {name: DEEDS[name] for name in OTHERS[library]}) == ""


SAID = "<message id='ID' to='{room}' type='groupchat'><body>WORDS</body></message>"
PLACES = (
    "<presence to='{room}/WORDS'/>",
    "<message id='ID' to='{room}' type='groupchat'><subject>WORDS</subject></message>",
    "<presence to='{room}/Ann'><status>WORDS</status></presence>",
)
"""Where else people write what everybody in a room gets."""


def _forging() -> Iterator[tuple[str, str]]:
    """Let a stranger write entries of the log as a body, and in one of the other places."""
    for number, forged in enumerate(FORGED.values()):
        text = forged.replace(ROOM, "{room}").replace(ACCOUNT, "{account}/r")
        for place in (SAID, PLACES[number % len(PLACES)]):
            id_ = f"{number}{'of'[place is SAID]}"
            words = escape(text, {"\n": "&#10;", "'": "&apos;"})
            yield "owner", place.replace("WORDS", words).replace("ID", id_)
            if "ID" in place:  # ejabberd's debugging room takes one message at a time
                yield "hears", f"id={id_}"
                # It logs what it sends, too; Prosody returns a subject without its id.
                yield from [("hears", "<body>" if place is SAID else "<subject>")] * 2
    yield "owner", SAID.replace("WORDS", "enough")
    yield "sees", "enough"


@pytest.mark.parametrize(
    "debugged", ["prosody", pytest.param("ejabberd", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("prints", ["lines", "json"])
@pytest.mark.parametrize("library", ["slixmpp", "xmpp.js"])
async def test_a_stranger_who_writes_entries_of_the_log_accuses_and_hides_nothing(
    library: str,
    prints: str,
    debugged: ServerProcess | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOT_PRINTS", prints)
    joined = DEEDS["kicked"].steps[:3]
    forged = (*joined, *_forging())
    kicked = (*forged, *DEEDS["kicked"].steps[3:])
    async with stage_of(library, debugged, tmp_path) as stage:
        assert found_in(await stage.do(Deed(forged))) == []
        (finding,) = found_in(await stage.do(Deed(kicked)))
        assert finding.name == "removed"
