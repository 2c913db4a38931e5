import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.e2e.bridge_process import COMMAND, TOOLS, BridgeProcess, run_in

PACKAGE = Path(__file__).parent.parent / "packages" / "dice"
SAMPLES = ["word_count", "sentiment", "current_time", "answer_general_question", "current_weather"]
DICE = ["throw_dice", "dice.say", "lose", "roll_for_long", "where", "throw_and_tell"]
LOADED = "dice_tools is loaded"
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder where somebody else's package of tools is installed."""
    source = tmp_path_factory.mktemp("source") / "dice"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--target", str(target), str(source)]
    subprocess.run([*pip, *offline], check=True)
    return str(target)


def serving(home: Path, *names: str, path: str = "", **environment: str) -> BridgeProcess:
    """The bridge with these sets on its command line."""
    nothing = home / "nothing.env"
    nothing.touch()
    options = [word for name in names for word in ("--toolset", name)]
    return BridgeProcess(
        home,
        {**({"PYTHONPATH": path} if path else {}), **environment},
        arguments=("serve", "--env-file", str(nothing), *options),
    )


async def listed(bridge: BridgeProcess) -> list[str]:
    """The tools beyond the bridge's own, which come first."""
    names = [each["name"] for each in (await bridge.request("tools/list"))["tools"]]
    assert names[: len(TOOLS)] == TOOLS
    return names[len(TOOLS) :]


async def test_what_is_not_asked_for_is_not_imported(tmp_path: Path, installed: str) -> None:
    async with serving(tmp_path, "samples", path=installed) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == SAMPLES
    assert LOADED not in bridge.stderr


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


async def test_somebody_elses_tools_are_listed_and_called(tmp_path: Path, installed: str) -> None:
    async with serving(tmp_path, "dice", "samples", path=installed) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == [*DICE, *SAMPLES]
        for each in (await bridge.request("tools/list"))["tools"]:
            Draft202012Validator.check_schema(each["inputSchema"])
            Draft202012Validator.check_schema(each.get("outputSchema", {}))
        die = {"sides": 20, "shape": "sphere", "labels": ["a"]}
        thrown = {"faces": [20, 20, 3], "total": 43, "die": die, "noteOfLuck": "good"}
        arguments = {"die": die, "times": 2, "luck": "good", "extra": [3]}
        assert await bridge.call("throw_dice", **arguments) == thrown
        assert await bridge.bare("throw_dice", **arguments) == thrown
        call = {"name": "throw_dice", "arguments": arguments, "_meta": ENVELOPE}
        assert (await bridge.request("tools/call", call))["structuredContent"] == thrown
        assert await bridge.bare("dice.say", number=2.5) == text("2.5")
        assert await bridge.call("where") == {"room": "", "rate": 60}
        told = await bridge.request("tools/call", {"name": "throw_and_tell"})
        assert told["structuredContent"]["total"] == 6
        assert told["content"][1]["text"] == "Say it with joy."
        assert (await bridge.request("resources/read", {"uri": "dice://last"}))["contents"]
        asked = await bridge.request("prompts/get", {"name": "bet", "arguments": {"colour": "red"}})
        assert asked["messages"][0]["content"]["text"] == "Bet on the red die."
    assert LOADED in bridge.stderr


BROKEN = {
    "raises.py": "raise RuntimeError('no\\nluck \\u202e')",
    "leaves.py": "import sys; sys.exit(0)",
    "lacks.py": "import a_missing_dependency",
    "unread.py": "def (",
    "wrong.py": "TOOLS = ['no set']",
    "plain.py": "from bridge.toolkit import Toolset\ndef f(): ...\nTOOLS = Toolset('p', (f,))",
    "pinger.py": "from bridge.toolkit import tool\n@tool(title='P')\ndef ping() -> str:\n  'P.'",
}
CAUSES = {
    "raises:TOOLS": r"RuntimeError: no\u{A}luck \u{202E}",
    "leaves:TOOLS": "SystemExit: 0",
    "lacks:TOOLS": "ModuleNotFoundError: No module named 'a_missing_dependency'",
    "unread:TOOLS": "SyntaxError: invalid syntax",
    "wrong:TOOLS": "the toolset wrong:TOOLS is no Toolset but a list",
    "wrong:OTHER": "has no attribute 'OTHER'",
    "plain:TOOLS": "f is no tool; is there an @tool above it?",
    "pinger:TOOLS": "'ping' is no name for a tool",
    "absent:TOOLS": f"No module named 'absent'; install it for {Path(sys.executable).parent}/",
    ":TOOLS": "the toolset :TOOLS is not of the form MODULE:ATTRIBUTE",
    "wrong:": "is not of the form MODULE:ATTRIBUTE",
    "unwritten": "the toolset unwritten cannot be loaded: ModuleNotFoundError",
    "sunken": "the toolset sunken does not fit in here: sink wants a Ship; there are 0 here",
    "": "there is no toolset ''",
    "sampels": "there is no toolset 'sampels'; there are llm, samples, dice, loaded-dice, sunken",
}


@pytest.fixture(scope="module")
def broken(installed: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("broken")
    for name, program in BROKEN.items():
        (folder / name).write_text(program, "utf-8")
    return f"{folder}:{installed}"


@pytest.mark.parametrize("name", ["raises:TOOLS", "samples,llm"])
def test_a_set_that_cannot_be_loaded_is_named_with_the_cause_in_one_line(
    tmp_path: Path, broken: str, name: str
) -> None:
    child = run_in(tmp_path, COMMAND, "serve", "--toolset", name, PYTHONPATH=broken)
    assert (child.returncode, child.stdout) == (2, "")
    (said,) = [each for each in child.stderr.splitlines() if each.startswith("xmpp-bridge: ")]
    assert CAUSES.get(name, f"'{name}'; there are llm, samples, ") in said
    assert said.isprintable()
    assert said.endswith("; each set takes a --toolset of its own") is ("," in name)


async def test_the_settings_sets_that_do_not_do_are_problems_and_the_others_are_served(
    tmp_path: Path, broken: str
) -> None:
    wished = [
        "samples",
        *(warning for warning in CAUSES if warning),
        "dice",
        "loaded-dice",
        "samples",
    ]
    async with serving(tmp_path, path=broken, BRIDGE_TOOLSETS=",".join(wished)) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == [*SAMPLES, *DICE]
        assert await bridge.bare("word_count", text="a b") == text("2")
        problems = (await bridge.status())["problems"]
    told = [warning for warning in problems if warning.startswith("BRIDGE_TOOLSETS ")]
    assert len(told) == len(CAUSES)
    for name, cause in CAUSES.items():
        if name:
            (warning,) = [
                warning
                for warning in told
                if warning.startswith(f"BRIDGE_TOOLSETS names {name!r}, ")
            ]
            assert cause in warning
    assert "dice and loaded-dice both have a tool throw_dice" in told[-1]
    for warning in told:
        assert f"ERROR: {warning}" in bridge.stderr
