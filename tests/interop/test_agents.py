"""Real Codex and real Claude Code in a room, with a model that does what the test says."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.bridge_process import COMMAND, RUN_SECONDS, TOOLS, run_in
from tests.interop.scripted_model import DONE, Json, Script, ScriptedModel, scripted_model
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness
from tests.support.prerequisites import agent as real

WHOLE_BYTES = 9_000
"""Every result that is no longer must reach the model as the bridge gave it."""

LINES = [f'{n} Grüße, 😀 "{n}" <b>&amp;</b> \\ \u202e{"x" * 40}' for n in range(60)]
"""What Wilma says: more than fits into a page."""
LAST = "That was all."
SAID = "Grüße from the model."

CODEX = """\
{model}
model_provider = "scripted"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false
[model_providers.scripted]
name = "scripted"
base_url = "{address}/v1"
"""
"""The settings of Codex; the plugins would ask for news of themselves at github.com."""

CLAUDE = {"ANTHROPIC_API_KEY": "of-nobody", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "30000"}
"""The variables of Claude Code, which waits 5 s at most by itself, and busy cores take longer."""


class Agent(NamedTuple):
    """One way in which a model works with the bridge."""

    client: str
    """What `register` calls it."""
    call: Callable[[str, Json], Json]
    """A call of one of our tools, as a model says it."""
    model: str = ""
    """The line of Codex's settings that chooses the model."""


def _function(name: str, arguments: Json) -> Json:
    named = {"namespace": "mcp__xmpp", "name": name}
    return {"type": "function_call", **named, "arguments": json.dumps(arguments)}


def _code(name: str, arguments: Json) -> Json:
    called = f"await tools.mcp__xmpp__{name}({json.dumps(arguments)})"
    return _javascript(
        f"const {{content, structuredContent}} = {called};"
        "text(structuredContent ?? content[0].text)"
    )


def _javascript(source: str) -> Json:
    return {"type": "custom_tool_call", "name": "exec", "input": source}


def _tool_use(name: str, arguments: Json) -> Json:
    return {"type": "tool_use", "name": f"mcp__xmpp__{name}", "input": arguments}


AGENTS = {
    # Codex does not know this model, and so shows it all tools and passes on least of a result.
    "codex": Agent("codex", _function, 'model = "scripted"'),
    # Its own models write code that calls the tools, and look for those of a server by themselves.
    "codex-code": Agent("codex", _code),
    "claude": Agent("claude", _tool_use),
}


@dataclass
class Session:
    """An agent that was registered with a bridge, and what went to and fro in its run."""

    agent: Agent
    home: Path
    room: str
    environ: dict[str, str]

    def results(self, key: str) -> list[Json]:
        """The results that have `key`, as the bridge wrote them."""
        wire = map(json.loads, (self.home / "wire").read_text().splitlines())
        return [each["result"] for each in wire if key in each.get("result", ())]

    @property
    def tools(self) -> dict[str, Json]:
        return {tool["name"]: tool for tool in self.results("tools")[0]["tools"]}

    @property
    def instructions(self) -> str:
        return str(self.results("instructions")[0]["instructions"])

    def run(self, script: Script) -> ScriptedModel:
        """Let the agent work until the script ends; return the model that it asked."""
        with scripted_model(script) as model:
            environ = self.environ
            if self.agent.client == "codex":
                file = self.home / ".codex/config.toml"
                settings = CODEX.format(model=self.agent.model, address=model.address)
                file.write_text(settings + file.read_text())
                words = ["codex", "--strict-config", "exec", "--skip-git-repo-check", "Look."]
            else:
                environ = {**environ, **CLAUDE, "ANTHROPIC_BASE_URL": model.address}
                read = [f"mcp__xmpp__{name}" for name in TOOLS if name != "xmppSend"]
                words = ["claude", "--print", "Look.", "--allowedTools", *read]
            assert DONE in _run(words, environ, self.home)
        return model


def _run(words: list[str], environ: dict[str, str], home: Path) -> str:
    ran = run_in(home / "project", *words, **environ)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return ran.stdout


@pytest.fixture(params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    """Each agent in turn."""
    client: str = request.param
    return client


@pytest.fixture
def session(name: str, sandbox: XmppServer, tmp_path: Path) -> Session:
    """An agent for which the bridge was registered as its user would, in a fresh room."""
    agent = AGENTS[name]
    (tmp_path / "project").mkdir()
    settings = sandbox.environment()
    write_settings(tmp_path / "s.env", settings)
    (tmp_path / "s.env").chmod(0o600)
    environ = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), **real(agent.client)}
    named = ["--env-file", str(tmp_path / "s.env"), "--approve-send"]
    _run([COMMAND, "register", agent.client, *named], environ, tmp_path)
    recorder = tmp_path / "recorder"
    recorder.write_text(
        f"""#!/bin/bash
exec {COMMAND} "$@" > >(
    while IFS= read -r line; do
        printf '%s\\n' "$line" >>{tmp_path}/wire
        printf '%s\\n' "$line"
    done
)
"""
    )
    recorder.chmod(0o700)
    file = tmp_path / {"codex": ".codex/config.toml", "claude": ".claude.json"}[agent.client]
    file.write_text(file.read_text().replace(f'"{COMMAND}"', f'"{recorder}"'))
    return Session(agent, tmp_path, settings["MUC_ROOM"], environ)


def _nothing() -> Script:
    yield from ()


def _one(call: Json) -> Script:
    yield call


def _without(schema: Json, keywords: set[str]) -> Json:
    """The schema of an object, without some keywords in what it says of each property."""
    properties = {
        name: {key: value for key, value in said.items() if key not in keywords}
        for name, said in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _as_in_javascript(text: str) -> str:
    """JSON with 1 for 1.0."""
    return re.sub(r"(\d)\.0\b", r"\1", text)


@pytest.mark.parametrize("name", ["codex"])
def test_codex_offers_all_tools_to_a_model_in_its_first_request(session: Session) -> None:
    model = session.run(_nothing())
    (ours,) = [each for each in model.requests[0]["tools"] if each.get("name") == "mcp__xmpp"]
    assert ours["description"] == session.instructions
    offered = {tool["name"]: tool for tool in ours["tools"]}
    assert set(offered) == set(session.tools) == set(TOOLS)
    for name, tool in session.tools.items():
        assert offered[name]["description"] == tool["description"]
        # Codex leaves these out, so a model knows them only if the description says them.
        left_out = {"minimum", "maximum", "minLength", "maxLength", "maxItems", "default"}
        assert offered[name]["parameters"] == _without(tool["inputSchema"], left_out)


@pytest.mark.parametrize("name", ["codex-code"])
def test_a_model_that_writes_code_in_codex_knows_of_the_tools_and_finds_all(
    session: Session,
) -> None:
    find = "text(ALL_TOOLS.filter(tool => tool.name.startsWith('mcp__xmpp__')))"
    model = session.run(_one(_javascript(find)))
    (begun,) = re.findall(r"- mcp__xmpp: (.+?)\.\.\.", json.dumps(model.requests[0]["input"]))
    assert session.instructions.startswith(begun)
    client = {each["name"]: each["description"] for each in json.loads(model.results[0])}
    assert set(client) == {f"mcp__xmpp__{name}" for name in session.tools}
    for name, tool in session.tools.items():
        declared = client[f"mcp__xmpp__{name}"]
        assert declared.startswith(tool["description"])
        for argument, schema in tool["inputSchema"]["properties"].items():
            said = f"  // {schema['description']}\n" if "description" in schema else ""
            assert f"{said}  {argument}" in declared


@pytest.mark.parametrize("name", ["claude"])
def test_claude_has_all_tools_whole_in_its_first_request(session: Session) -> None:
    first, *_ = session.run(_nothing()).requests
    said = [block["text"] for message in first["messages"] for block in message["content"]]
    assert any(session.instructions in text for text in said)
    offered = {tool["name"]: tool for tool in first["tools"]}
    for name, tool in session.tools.items():
        assert offered[f"mcp__xmpp__{name}"]["description"] == tool["description"]
        assert offered[f"mcp__xmpp__{name}"]["input_schema"] == tool["inputSchema"]


async def test_what_the_tools_return_reaches_the_model_whole(
    session: Session, sandbox: XmppServer
) -> None:
    call = session.agent.call

    def script() -> Script:
        status = json.loads((yield call("xmppStatus", {})))
        begun = status["cursor"].partition("-")[0] + "-0"
        yield call("xmppWait", {"since": begun, "contains": LAST, "timeoutSeconds": 30})
        yield call("xmppHistory", {})
        yield call("xmppHistory", {"limit": 501})
        yield call("xmppSend", {"message": SAID})

    async with Witness(sandbox, sandbox.witness, session.room, "Wilma") as wilma:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(asyncio.to_thread(session.run, script()))
            await wilma.joined("McpDebug", RUN_SECONDS)
            for line in [*LINES, LAST]:
                wilma.say(line)
        await wilma.heard(SAID)
        await wilma.left("McpDebug")
    given = session.results("content")
    assert [each.get("isError", False) for each in given] == [False, False, False, True, False]
    page = len(given[2]["content"][0]["text"].encode())
    assert given[2]["structuredContent"]["more"]
    assert WHOLE_BYTES * 0.8 < page <= WHOLE_BYTES
    for seen, result in zip(running.result().results, given, strict=True):
        text = _as_in_javascript(result["content"][0]["text"])
        if result.get("isError"):  # Claude Code adds the schema, if the model had not loaded it
            assert seen.startswith(text)
        else:
            assert _as_in_javascript(seen) == text
