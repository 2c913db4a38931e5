"""`BRIDGE_TOOLS`, and what the tools that are served say of the others."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from bridge.mcp.errors import ToolError
from bridge.mcp.toolset import Toolset, tool
from bridge.service import INSTRUCTIONS, OWN
from bridge.tools.served import naming_only_served, serving, unknown_names, without
from tests.e2e.bridge_process import COMMAND, NOWHERE, TOOLS, run_in
from tests.e2e.test_toolsets import SAMPLES


@pytest.mark.parametrize(
    ("names", "served", "problems"),
    [
        ((), TOOLS, []),
        (("xmppStatus", "echo"), ["echo", "xmppStatus"], []),
        (tuple(TOOLS), TOOLS, []),
        (
            ("xmppStatus", "xmppSatus"),
            ["xmppStatus"],
            ['BRIDGE_TOOLS names no tool: "xmppSatus": xmppStatus?'],
        ),
        (("nothing",), TOOLS, ['BRIDGE_TOOLS names no tool: "nothing"']),
        (
            ("x\u202e",),
            TOOLS,
            ['BRIDGE_TOOLS names no tool: "x\\u{202E}" (U+202E RIGHT-TO-LEFT OVERRIDE)'],
        ),
    ],
)
def test_the_named_tools_are_served_and_an_unknown_name_is_a_problem(
    names: tuple[str, ...], served: list[str], problems: list[str]
) -> None:
    toolset, wrong = serving(OWN, names), unknown_names(OWN, names)
    assert [each.name for each in toolset.tools] == served
    assert [str(problem) for problem in wrong] == problems
    assert toolset.withheld.keys() == set(TOOLS) - set(served)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Ask xmppStatus.", ""),
        ("Ask xmppStatus. Then wait.", "Then wait."),
        ("To wait: xmppStatusOf says so.", "To wait: xmppStatusOf says so."),
        ("Wait; xmppStatus says when! Go on.", "Wait; Go on."),
        ("To wait: xmppStatus. To go on: ask.", "To go on: ask."),
        ("Ask xmppStatus: it knows. Or wait; xmppStatus says when.", "Or wait."),
    ],
)
def test_a_sentence_goes_if_it_names_a_tool_that_is_not_served(text: str, left: str) -> None:
    assert without(text, ["xmppStatus"]) == left
    assert without(text, []) == text


@tool("ask", title="Ask", read_only=True)
async def ask(fails: bool = False) -> dict[str, object]:
    """Ask.

    Then call other. Or wait.
    """
    if fails:
        raise ToolError("It failed.", condition="conflict", hint="Call other. Wait.")
    step = {"tool": "other", "arguments": {}}
    result = {"ok": False, "hint": "Call other. Wait.", "body": "Call other."}
    return {"findings": [result], "nextStep": step, "message": "Call other."}


@tool("count", title="Count", read_only=True)
def count() -> dict[str, object]:
    """Count."""
    return {"hint": "Call other.", "nextStep": {"tool": "ask", "arguments": {}}}


@tool("other", title="Other", read_only=True)
def other() -> dict[str, object]:
    """Call count."""
    return {}


def test_advice_names_only_tools_that_are_served_and_strangers_words_stay() -> None:
    own = Toolset("own", (ask, count, other))
    chosen = serving(own, ["ask", "count"])
    asking, counting = naming_only_served(chosen, chosen).tools
    assert asking.description == "Ask.\n\nOr wait."
    result = {"ok": False, "hint": "Wait.", "body": "Call other."}
    assert asyncio.run(asking()) == {"findings": [result], "message": "Call other."}
    with pytest.raises(ToolError) as raised:
        asyncio.run(asking(fails=True))
    assert raised.value.hint == "Wait."
    assert counting() == {"hint": "", "nextStep": {"tool": "ask", "arguments": {}}}
    assert naming_only_served(own, own) is own
    (kept, *_) = naming_only_served(chosen, Toolset("own", ())).tools
    assert kept is ask


def test_what_is_said_at_the_start_names_only_tools_that_are_served() -> None:
    assert len(INSTRUCTIONS.encode()) <= 2_048
    assert set(re.findall(r"xmpp[A-Z]\w+", INSTRUCTIONS)) == set(TOOLS) - {"echo"}
    assert "xmppSend" not in without(INSTRUCTIONS, ["xmppSend"])
    sentences = without(INSTRUCTIONS, sorted(set(TOOLS) - {"xmppWait"})).split(". ")
    assert "To await anything else: xmppWait" in sentences
    assert all(re.match("[A-Z][^:]*(: [^:]+)?$", sentence) for sentence in sentences)


def test_sets_of_tools_are_served_whatever_the_setting_names(tmp_path: Path) -> None:
    ran = run_in(
        tmp_path,
        COMMAND,
        said=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) + "\n",
        **(NOWHERE | {"BRIDGE_TOOLS": "xmppStatus", "BRIDGE_TOOLSETS": "samples"}),
    )
    listed = json.loads(ran.stdout)["result"]["tools"]
    assert [each["name"] for each in listed] == ["xmppStatus", *SAMPLES]


def test_the_program_serves_what_the_setting_names_and_says_why_the_rest_is_missing(
    tmp_path: Path,
) -> None:
    calls = [("tools/list", {}), ("xmppSend", {"message": "hello"}), ("xmppStatus", {})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls)
    ]
    ran = run_in(
        tmp_path,
        COMMAND,
        said="\n".join(lines) + "\n",
        **(NOWHERE | {"BRIDGE_TOOLS": "xmppStatus,xmppWaitt", "HOME": str(tmp_path)}),
    )
    listed, refused, status = (json.loads(line) for line in ran.stdout.splitlines())
    assert [each["name"] for each in listed["result"]["tools"]] == ["xmppStatus"]
    assert "BRIDGE_TOOLS does not name it" in json.dumps(refused["error"])
    assert "xmppWait?" in json.dumps(status["result"]["problems"])


@pytest.mark.parametrize("command", ["settings", "check", "serve"])
@pytest.mark.parametrize(
    ("variable", "names", "said"),
    [
        ("BRIDGE_TOOLS", "xmppStatus,xmppWaitt", ' names no tool: "xmppWaitt": xmppWait?'),
        ("BRIDGE_TOOLSETS", "samples,nope", " names 'nope', which is left out: there is no tool"),
    ],
)
def test_every_command_that_reads_the_settings_names_a_tool_or_a_set_that_there_is_not(
    command: str, variable: str, names: str, said: str, tmp_path: Path
) -> None:
    named = {variable: names, "XDG_STATE_HOME": str(tmp_path)}
    ran = run_in(tmp_path, COMMAND, command, **(NOWHERE | named))
    said = f"{variable}{said}"
    assert (ran.stdout + ran.stderr).count(said) == 1
    assert ran.returncode == (0 if command == "serve" else 2)
