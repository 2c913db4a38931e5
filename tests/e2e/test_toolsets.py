import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.e2e.bridge_process import (
    COMMAND,
    TOOLS,
    BridgeProcess,
    RpcFailedError,
    ToolFailedError,
)
from tests.samples.open_meteo import OpenMeteoServer, running_open_meteo

PACKAGE = Path(__file__).parent.parent / "packages" / "dice"
SAMPLES = [
    "word_count",
    "sentiment",
    "current_time",
    "answer_general_question",
    "current_weather",
]
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


@pytest_asyncio.fixture
async def open_meteo() -> AsyncIterator[OpenMeteoServer]:
    async with running_open_meteo() as running:
        yield running


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


def refused(home: Path, *names: str, path: str = "") -> str:
    """What the bridge says when it does not start with these sets."""
    options = [word for name in names for word in ("--toolset", name)]
    child = subprocess.run(
        [COMMAND, "serve", *options],
        input=b'{"jsonrpc":"2.0","method":"tools/list","id":1}\n',
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": path},
        capture_output=True,
    )
    assert (child.returncode, child.stdout) == (2, b"")
    said = child.stderr.decode()
    assert "Traceback" not in said
    (line,) = [one for one in said.splitlines() if one.startswith("xmpp-bridge: ")]
    return line.removeprefix("xmpp-bridge: ")


async def listed(bridge: BridgeProcess) -> list[str]:
    """The tools beyond the bridge's own, which come first."""
    return further((await bridge.request("tools/list"))["tools"])


def further(tools: list[dict[str, Any]]) -> list[str]:
    names = [one["name"] for one in tools]
    ours = [name for name in names if name in TOOLS]
    assert names[: len(ours)] == ours
    return names[len(ours) :]


def test_a_pipe_into_the_command_lists_every_tool_of_a_set(tmp_path: Path) -> None:
    child = subprocess.run(
        [COMMAND, "serve", "--toolset", "samples"],
        input=b'{"jsonrpc":"2.0","method":"tools/list","id":1}\n',
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    result = json.loads(child.stdout)["result"]
    assert further(result["tools"]) == SAMPLES


async def test_a_set_that_is_not_asked_for_is_not_there(tmp_path: Path, installed: str) -> None:
    async with serving(tmp_path, path=installed) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == []
    assert LOADED not in bridge.stderr


async def test_what_is_not_asked_for_is_not_imported(tmp_path: Path, installed: str) -> None:
    async with serving(tmp_path, "samples", path=installed) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == SAMPLES
    assert LOADED not in bridge.stderr


CALLS: list[tuple[str, dict[str, object]]] = [
    ("word_count", {"text": "the quick brown fox jumps"}),
    ("sentiment", {"text": "great good nice fun love happy joy, but sad"}),
    ("current_time", {}),
    ("answer_general_question", {"question": "Why is the sky blue?"}),
    ("current_weather", {"location": "Paris"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_every_sample_works_in_all_three_ways_of_speaking(
    tmp_path: Path, open_meteo: OpenMeteoServer, tool: str, arguments: dict[str, object]
) -> None:
    async with serving(tmp_path, "samples", **open_meteo.environment) as bridge:
        await bridge.initialize()
        tools = (await bridge.request("tools/list"))["tools"]
        described = next(one for one in tools if one["name"] == tool)
        Draft202012Validator.check_schema(described["inputSchema"])
        call = {"name": tool, "arguments": arguments}
        handshake = await bridge.request("tools/call", call)
        stateless = await bridge.request("tools/call", {**call, "_meta": ENVELOPE})
        bare = await bridge.bare(tool, **arguments)
        assert not handshake["isError"]
        assert stateless["resultType"] == "complete"
        if "outputSchema" not in described:
            assert handshake["content"] == stateless["content"] == bare["content"]
            assert "structuredContent" not in handshake
            return
        validator = Draft202012Validator(described["outputSchema"])
        for result in (handshake, stateless):
            validator.validate(result["structuredContent"])
            data, told = result["content"]
            assert json.loads(data["text"]) == result["structuredContent"]
            assert told["annotations"] == {"audience": ["assistant"]}
        json_part, interpret_part = bare["content"]
        validator.validate(json_part["json"])
        assert json.loads(json_part["text"]) == json_part["json"]
        said = told["text"]
        assert interpret_part == {"type": "interpret", "prompt": said, "text": said}


async def test_the_samples_results_are_as_their_siblings_have_them(tmp_path: Path) -> None:
    async with serving(tmp_path, "samples") as bridge:
        assert await bridge.bare("word_count", text="the quick brown fox jumps") == text("5")
        assert await bridge.bare(
            "sentiment", text="great good nice fun love happy joy, but sad"
        ) == text("positive (score=0.75)")
        question = "Why is the sky\nblue?"
        assert await bridge.bare("answer_general_question", question=question) == text(question)


async def test_every_set_is_served_alike_in_both_framings(tmp_path: Path, installed: str) -> None:
    call = {"name": "dice.say", "arguments": {"number": 2.5}}
    asked: list[dict[str, Any]] = [
        {"method": "word_count", "params": {"text": "a b"}},
        {"method": "tools/call", "params": call},
        {"method": "tools/call", "params": {**call, "_meta": ENVELOPE}},
        {"method": "tools/call", "params": {"name": "throw_and_tell"}},
    ]
    async with serving(tmp_path, "samples", "dice", path=installed) as bridge:
        for number, one in enumerate(asked):
            answers = []
            for framing in (framed, lined):
                id_ = f"{number} {framing.__name__}"
                answer = bridge.expect(id_)
                bridge.send_raw(framing({"jsonrpc": "2.0", "id": id_, **one}))
                answers.append((await bridge.answer(answer))["result"])
            assert answers[0] == answers[1]
            assert answers[0]["content"]
        assert bridge.framed == len(asked)


def lined(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


def framed(message: object) -> bytes:
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def test_an_older_client_is_answered_byte_for_byte_in_its_own_dialect(
    tmp_path: Path, open_meteo: OpenMeteoServer
) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "word_count", "arguments": {"text": "один two"}},
        },
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
        {
            "jsonrpc": "2.0",
            "id": 5,
            "method": "tools/call",
            "params": {"name": "current_weather", "arguments": {"location": "Paris"}},
        },
    ]
    async with serving(tmp_path, "samples", **open_meteo.environment) as bridge:
        answers = [bridge.expect(one["id"]) for one in asked]
        for message in asked:
            bridge.send_raw(framed(message))
        replies = [await bridge.answer(one) for one in answers]
        assert bridge.framed == len(asked)
    initialized, tools, count, _, weather = (one["result"] for one in replies)
    assert initialized["protocolVersion"] == "2024-11-05"
    assert {"name", "description", "inputSchema", "input_schema"} == set(tools["tools"][-1])
    assert count == {**text("2"), "isError": False}
    data, told = weather["content"]
    assert (data["type"], data["json"]["place"]) == ("json", "Paris, Île-de-France, France")
    assert json.loads(data["text"]) == data["json"]
    assert told == {"type": "interpret", "prompt": told["prompt"], "text": told["prompt"]}
    # All of it, in order: header, blank line, compact JSON in UTF-8, and nothing in between.
    sent = b"".join(framed(one) for one in replies)
    assert bridge.stdout == bodies(sent)


def bodies(data: bytes) -> bytes:
    """The frames without their headers, as `BridgeProcess` keeps them."""
    found = b""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.removeprefix(b"Content-Length: "))
        found, data = found + rest[:length], rest[length:]
    return found


@pytest.mark.parametrize("name", ["dice", "dice_tools:TOOLS"])
async def test_somebody_elses_tools_are_listed_and_called(
    tmp_path: Path, installed: str, name: str
) -> None:
    async with serving(tmp_path, name, "samples", path=installed) as bridge:
        await bridge.initialize()
        tools = (await bridge.request("tools/list"))["tools"]
        assert further(tools) == [*DICE, *SAMPLES]
        for one in tools:
            Draft202012Validator.check_schema(one["inputSchema"])
            Draft202012Validator.check_schema(one.get("outputSchema", {}))
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


async def test_somebody_elses_errors_are_told_as_ours_are(tmp_path: Path, installed: str) -> None:
    async with serving(tmp_path, "dice", path=installed) as bridge:
        for arguments, complaint in (
            ({"die": {"sides": 1}}, "die.sides is 1; the least is 2"),
            ({"die": {}, "luck": "none"}, "luck is 'none'"),
            ({"die": {"shape": "cone"}}, "one of cube, sphere is wanted"),
            ({"die": {}, "extra": ["1"]}, r"extra\[0\] is a string"),
        ):
            with pytest.raises(RpcFailedError, match=complaint) as bare:
                await bridge.bare("throw_dice", **arguments)
            assert bare.value.code == -32602
        with pytest.raises(RpcFailedError) as argument:
            await bridge.bare("dice.say", number=-1)
        assert (argument.value.code, argument.value.message) == (-32602, "no die shows that")
        with pytest.raises(RpcFailedError) as lost:
            await bridge.bare("lose")
        assert lost.value.code == -32603
        assert lost.value.data == {"condition": "item-not-found", "hint": "Bend down."}
        with pytest.raises(ToolFailedError, match="fell under the table"):
            await bridge.call("lose")


async def test_somebody_elses_tool_tells_its_progress_and_is_cancelled(
    tmp_path: Path, installed: str
) -> None:
    async with serving(tmp_path, "dice", path=installed) as bridge:
        await bridge.initialize()
        meta = {"progressToken": "far"}
        params = {"name": "roll_for_long", "arguments": {}, "_meta": meta}
        bridge.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params})
        assert (await bridge.frame())["params"] == {
            "progressToken": "far",
            "progress": 1,
            "total": 2,
            "message": "rolls",
        }
        cancel = {"method": "notifications/cancelled", "params": {"requestId": "long"}}
        bridge.send({"jsonrpc": "2.0", **cancel})
        await bridge.stderr_says("the die was caught")
        assert await bridge.request("ping") == {}


def test_a_set_that_does_not_exist_stops_the_start_with_those_that_do(
    tmp_path: Path, installed: str
) -> None:
    said = refused(tmp_path, "samples", "sampels", path=installed)
    assert said.startswith("there is no toolset 'sampels'; there are llm, samples, ")
    assert "dice, loaded-dice, sunken, unwritten" in said


def test_several_sets_in_one_word_are_told_how_to_be_named(tmp_path: Path) -> None:
    said = refused(tmp_path, "samples,llm")
    assert said.startswith("there is no toolset 'samples,llm'; there are llm, samples, ")
    assert said.endswith("; each set takes a --toolset of its own")
    assert "--toolset of its own" not in refused(tmp_path, "sampels")


def test_a_clash_of_two_sets_names_both_and_the_tool(tmp_path: Path, installed: str) -> None:
    assert refused(tmp_path, "dice", "loaded-dice", path=installed) == (
        "the toolsets dice and loaded-dice both have a tool throw_dice"
    )


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
    "absent:TOOLS": "No module named 'absent'",
    ":TOOLS": "the toolset :TOOLS is not of the form MODULE:ATTRIBUTE",
    "wrong:": "is not of the form MODULE:ATTRIBUTE",
    "unwritten": "the toolset unwritten cannot be loaded: ModuleNotFoundError",
    "sunken": "the toolset sunken does not fit in here: sink wants a Ship; there are 0 here",
    "": "there is no toolset ''",
}


@pytest.fixture(scope="module")
def broken(installed: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("broken")
    for name, program in BROKEN.items():
        (folder / name).write_text(program, "utf-8")
    return f"{folder}:{installed}"


@pytest.mark.parametrize("name", CAUSES)
def test_a_set_that_cannot_be_loaded_is_named_with_the_cause_in_one_line(
    tmp_path: Path, broken: str, name: str
) -> None:
    said = refused(tmp_path, name, path=broken)
    assert CAUSES[name] in said
    assert said.isprintable()


async def test_the_settings_sets_that_do_not_do_are_problems_and_the_others_are_served(
    tmp_path: Path, broken: str
) -> None:
    wished = ["samples", *(one for one in CAUSES if one), "dice", "loaded-dice", "samples"]
    async with serving(tmp_path, path=broken, BRIDGE_TOOLSETS=",".join(wished)) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == [*SAMPLES, *DICE]
        assert await bridge.bare("word_count", text="a b") == text("2")
        problems = (await bridge.status())["problems"]
    told = [one for one in problems if one.startswith("BRIDGE_TOOLSETS ")]
    assert len(told) == len(CAUSES)
    for name, cause in CAUSES.items():
        if name:
            (one,) = [one for one in told if one.startswith(f"BRIDGE_TOOLSETS names {name!r}, ")]
            assert cause in one
    assert "dice and loaded-dice both have a tool throw_dice" in told[-1]
    for one in told:
        assert f"ERROR: {one}" in bridge.stderr


async def test_a_set_of_the_settings_gives_way_to_one_of_the_command_line(
    tmp_path: Path, installed: str
) -> None:
    async with serving(
        tmp_path, "loaded-dice", path=installed, BRIDGE_TOOLSETS="dice,loaded-dice"
    ) as bridge:
        assert await bridge.bare("throw_dice") == text("6")
        assert await listed(bridge) == ["throw_dice"]
        (problem,) = [one for one in (await bridge.status())["problems"] if "TOOLSETS" in one]
        assert "the toolsets loaded-dice and dice both have a tool throw_dice" in problem


async def test_read_only_withholds_the_writing_tools_of_every_set(
    tmp_path: Path, installed: str
) -> None:
    async with serving(tmp_path, "dice", "samples", path=installed, BRIDGE_READ_ONLY="1") as bridge:
        assert await listed(bridge) == [*(one for one in DICE if one != "throw_dice"), *SAMPLES]


async def test_without_the_extra_the_weather_is_listed_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "httpx.py").write_text("raise ModuleNotFoundError('httpx')", "utf-8")
    async with serving(tmp_path, "samples", path=str(tmp_path / "none")) as bridge:
        assert (await listed(bridge))[-1] == "current_weather"
        with pytest.raises(ToolFailedError, match=r"xmpp-debug-bridge\[llm\]"):
            await bridge.call("current_weather", location="Paris")


def test_the_client_starts_the_bridge_with_the_sets_it_is_told(
    tmp_path: Path, installed: str
) -> None:
    child = subprocess.run(
        [COMMAND, "client", "--sandbox", "--toolset", "dice"],
        input=b"hello\n",
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": installed},
        capture_output=True,
        check=True,
    )
    assert child.stdout == b"Echo: hello\n"
    assert LOADED.encode() in child.stderr


def test_a_pipe_lists_the_tools_of_a_model_that_is_set_up(tmp_path: Path) -> None:
    asked = b'{"jsonrpc":"2.0","method":"tools/list","id":1}\n'
    model = {"LLM_BASE_URL": "https://llm.example.org/v1", "LLM_MODEL": "m"}
    for environment, listed_too in ((model, ["scout", "xmppDigest"]), ({}, [])):
        ran = subprocess.run(
            [COMMAND],
            input=asked,
            capture_output=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment},
            timeout=20,
            check=True,
        )
        assert further(json.loads(ran.stdout)["result"]["tools"]) == listed_too


async def test_the_current_directorys_file_names_installed_sets_and_no_module(
    tmp_path: Path, installed: str
) -> None:
    strangers = "XMPP_DOMAIN=localhost\nBRIDGE_TOOLSETS=dice,dice_tools:TOOLS,samples\n"
    (tmp_path / ".env").write_text(strangers, "utf-8")
    async with BridgeProcess(tmp_path, {"PYTHONPATH": installed}, arguments=("serve",)) as bridge:
        await bridge.initialize()
        assert await listed(bridge) == [*DICE, *SAMPLES]
        (warning,) = [
            one for one in (await bridge.status())["warnings"] if "BRIDGE_TOOLSETS" in one
        ]
    assert "is ignored, but for 'dice,samples', because" in warning


def test_a_pipe_is_told_every_tool_of_every_set(tmp_path: Path) -> None:
    asked = b'{"jsonrpc":"2.0","method":"tools/list","id":1}\n'
    ran = subprocess.run(
        [COMMAND, "serve", "--toolset", "llm", "--toolset", "samples"],
        input=asked,
        capture_output=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=20,
        check=True,
    )
    names = [one["name"] for one in json.loads(ran.stdout)["result"]["tools"]]
    assert names[: len(TOOLS)] == TOOLS
    assert {*names[len(TOOLS) :]} == {
        *("scout", "xmppDigest"),
        *("word_count", "sentiment", "current_time", "answer_general_question"),
        "current_weather",
    }
