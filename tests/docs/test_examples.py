"""The documents show what is so: their commands run, and their examples are real."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.client.conversation import CHAT_GREETING
from tests.client.terminal import Terminal
from tests.docs.pages import (
    ELISION,
    PAGES,
    Block,
    alike,
    blocks,
    check,
    elided,
    exchanges,
    pattern,
    prose,
    quoted,
    section,
    shown_as,
    tables,
)
from tests.e2e.bridge_process import COMMAND, TOOLS, BridgeProcess, RpcFailedError, run_in
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

ENVIRONMENT = Path(sys.executable).parent.parent
INSTALLS = re.compile(r"python3 -m venv \.venv|\.venv/bin/pip install .*")
"""What is not done again here: this environment came about by it."""
SETTINGS = """\
XMPP_SERVICE=xmpp://127.0.0.1:1
XMPP_USERNAME=bot@localhost
XMPP_PASSWORD=secret
MUC_ROOM=room@conference.localhost
"""
YOU = "/home/you"
CHECKOUT = f"{YOU}/xmpp-debug-bridge/.venv/bin/xmpp-bridge"


# --- Every command runs ---------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of somebody who has read the pages as far as here."""
    (tmp_path / ".venv").symlink_to(ENVIRONMENT)
    settings = tmp_path / ".config" / "xmpp-bridge.env"
    settings.parent.mkdir()
    settings.write_text(SETTINGS)
    settings.chmod(0o600)
    for each in blocks(PAGES["docs/toolsets.md"], "python"):
        (name,) = re.findall(r'Toolset\("(\w+)"', each.text)
        (tmp_path / f"{name}.py").write_text(each.text)
    return tmp_path


def _run(home: Path, command: str, said: str = "", **environ: str) -> str:
    environ["PATH"] = f"{home}/.venv/bin:/usr/bin:/bin"
    shell = ("bash", "-euo", "pipefail", "-c")
    ran = run_in(home, *shell, command, said=said, **environ)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout


COMMANDS = [
    each
    for page, text in PAGES.items()
    # What CI runs, as test_lists.py holds; the others have tests of their own.
    if page.removeprefix("docs/")
    not in {"CONTRIBUTING.md", "testing-a-bot.md", "waking.md", "monitoring.md"}
    for each in blocks(text, "sh")
    if each.mark != "test"
]


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_every_command_runs(block: Block, home: Path) -> None:
    if " .env " in block.text:
        (home / ".env").write_text(SETTINGS)
    for line in block.lines:
        parts = [part for part in line.split(" && ") if not INSTALLS.fullmatch(part)]
        assert parts
        said = _run(home, " && ".join(parts), "send hello\n" if "client" in line else "")
        assert said or "bridge" not in parts[-1].split()[0]


def test_a_name_and_a_json_line_are_all_it_takes_to_call_a_tool(home: Path) -> None:
    (asking,) = (each for each in COMMANDS if '"method":"echo"' in each.text)
    both = blocks(PAGES["docs/commands.md"], "sh", "json")
    answer = both[both.index(asking) + 1]
    assert json.loads(_run(home, asking.text)) == json.loads(answer.text)


# Those of testing-a-bot.md want what was saved before: test_testing_a_bot.py looks at them.
SCREENS = [
    each
    for page, text in PAGES.items()
    if page != "docs/testing-a-bot.md"
    for each in blocks(text, "console")
]


@pytest.mark.parametrize("block", SCREENS, ids=str)
def test_every_screen_is_what_appears(block: Block, home: Path) -> None:
    prompt, *lines = block.lines
    output = _run(home, prompt.removeprefix("$ "))
    output = output.replace(f"{home}/.venv/bin/xmpp-bridge", CHECKOUT).replace(COMMAND, CHECKOUT)
    shown = shown_as(output.replace(str(home), YOU))
    assert pattern(lines).fullmatch(shown), shown


def test_the_conversation_shows_what_a_person_sees(tmp_path: Path) -> None:
    (block,) = (
        each for each in blocks(PAGES["docs/commands.md"], "text") if each.lines[0] == CHAT_GREETING
    )
    with Terminal(tmp_path, ["--sandbox"]) as terminal:
        for line in block.lines:
            if line.startswith(terminal.prompt):
                terminal.prompts()
                terminal.type(line.removeprefix(terminal.prompt) + "\r")
            elif line.strip() != ELISION:
                # What is known in advance of the line; all of it is looked at below.
                terminal.shows(max(re.split(r"[0-9.]+", line), key=len))
        assert terminal.end() == 0
        seen = [alike(line) for line in terminal.screen.lines]
    expected = [alike(line) for line in block.lines if line.strip() != ELISION]
    assert [line for line in expected if line not in seen] == []
    # The news come when they come; all else in this order.
    rest = iter(seen)
    assert all(line in rest for line in expected if not line.startswith("#"))


# --- Every example is real ------------------------------------------------------------------------

EXAMPLES = [each for each in blocks(PAGES["docs/tools.md"], "text") if "Robot" not in each.text]
(CASE,) = (each for each in blocks(PAGES["docs/tools.md"], "text") if "Robot" in each.text)


def test_there_is_an_example_of_each_tool() -> None:
    shown = [each.tool for block in EXAMPLES for each in exchanges(block)]
    assert sorted(shown) == sorted(TOOLS)
    for each in shown:
        (block,) = blocks(section("docs/tools.md", f"## {each}"), "text")
        assert block in EXAMPLES
        assert [it.tool for it in exchanges(block)] == [each]
    rows = tables(section("README.md", "## The tools"))["tool"]
    assert sorted(quoted(row[0])[0] for row in rows) == sorted(TOOLS)


async def _hold(bridge: BridgeProcess, block: Block, same: dict[str, str]) -> None:
    """Call as the block does, with the cursors of this run, and hold the answers against it."""
    for each in exchanges(block):
        arguments = {
            name: same.get(value, value) if isinstance(value, str) else value
            for name, value in each.arguments.items()
        }
        try:
            real: Any = await bridge.bare(each.tool, **arguments)
        except RpcFailedError as error:
            told = f"{error.data['condition']}: {error.message}"
            assert pattern(each.answer.splitlines()).fullmatch(shown_as(told)), told
        else:
            check(elided(each.answer), real, each.tool, same)


async def test_every_example_is_what_the_tools_answer(tmp_path: Path) -> None:
    same: dict[str, str] = {}
    async with BridgeProcess(tmp_path, arguments=["--sandbox"]) as bridge:
        await bridge.joined()
        for block in EXAMPLES:
            await _hold(bridge, block, same)


async def test_the_worked_case_is_one_that_happened(prosody: XmppServer, tmp_path: Path) -> None:
    assert len(CASE.lines) == 4
    settings = prosody.environment()
    room = settings["MUC_ROOM"]
    async with (
        Witness(prosody, prosody.witness, room, "Wilma") as wilma,
        Witness(prosody, prosody.robot, room, "Robot"),
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        since = (await bridge.joined())["cursor"]
        await wilma.kick("Robot", "too many messages")
        assert (await bridge.bare("xmppWait", since=since, kinds=["leave"]))["matched"]
        await _hold(bridge, CASE, {})


def test_a_wrong_password_is_told_as_shown(home: Path, sandbox: XmppServer) -> None:
    environ = {**sandbox.environment(), "XMPP_PASSWORD": "no"}
    (block,) = blocks(PAGES["docs/faults.md"], "json")
    command = next(
        each for each in quoted(prose(PAGES["docs/faults.md"])) if each.startswith("echo ")
    )
    check(elided(block.text), json.loads(_run(home, command, **environ)))


JSON = [each for text in PAGES.values() for each in blocks(text, "json")]


@pytest.mark.parametrize("block", JSON, ids=str)
def test_what_is_called_json_can_be_read(block: Block) -> None:
    json.loads(block.text)
