"""Data that comes with an instruction, shown by the client, with a model and without."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from bridge.client import formatting
from bridge.client.interpreting import interpreter_for
from bridge.mcp.jsonrpc import Json
from tests.client import hostile_server
from tests.client.hostile_server import reply
from tests.client.piped import run
from tests.llm.model_service import KEY, Turn, model_service, replying, saying
from tests.llm.test_model import settings

DATA = {"city": "Ulm\u202e", "degrees": 7, "of": {"a": None}}
INSTRUCTION = "Tell it\nin a sentence."
OBJECT: Json = {**DATA, "interpret": INSTRUCTION}

RESULTS: dict[str, dict[str, Json]] = {
    "older dialect and bare, each part with a text": {
        "content": [
            {"type": "json", "json": DATA, "text": "{}"},
            {"type": "interpret", "prompt": INSTRUCTION, "text": "x"},
        ]
    },
    "structured": {
        "content": [
            {"type": "text", "text": json.dumps(OBJECT)},
            {"type": "text", "text": INSTRUCTION},
        ],
        "structuredContent": OBJECT,
    },
    "not structured": {
        "content": [
            {"type": "text", "text": json.dumps(OBJECT)},
            {"type": "text", "text": INSTRUCTION},
        ]
    },
    "structured alone": {"content": [], "structuredContent": OBJECT},
}


@pytest.mark.parametrize("dialect", RESULTS)
def test_data_with_an_instruction_is_readable_in_every_dialect(dialect: str) -> None:
    answer = formatting.tool_result(RESULTS[dialect])
    assert (answer.data, answer.instruction) == (DATA, INSTRUCTION)
    assert formatting.for_person(answer) == (
        "city: Ulm\\u{202E}\ndegrees: 7\nof: a none\n\nHow to read this: Tell it\nin a sentence."
    )
    in_one_line = formatting.for_pipe(answer)
    assert "\n" not in in_one_line
    assert json.loads(in_one_line) == {**DATA, "city": "Ulm\\u{202E}", "interpret": INSTRUCTION}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "json", "json": [1, "\u202e"]}]},
        {"content": [{"type": "interpret", "prompt": "alone"}]},
        {"content": [{"type": "json", "text": "{"}, {"type": "interpret", "text": 7}]},
        {"content": [], "structuredContent": {"interpret": "alone"}},
        {"content": [], "structuredContent": {"interpret": 1, "a": 1}},
        {"content": [{"type": "text", "text": "{"}, {"type": "text", "text": "b"}]},
    ],
)
def test_half_a_pair_is_shown_as_it_is(result: Json) -> None:
    answer = formatting.tool_result(result)
    assert answer.instruction == ""
    assert "of no type" not in formatting.for_person(answer)
    assert "\u202e" not in formatting.for_person(answer)


def test_a_failure_is_never_taken_for_data() -> None:
    answer = formatting.tool_result({**RESULTS["structured"], "isError": True})
    assert (answer.failed, answer.instruction) == (True, "")


REPORT = "It is late.\n\u202eGood night."
BARE = "It is late.\\u{A}\\u{202E}Good night."


async def test_the_model_reports_on_the_data_and_its_words_are_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "log"
    dialects = [RESULTS["structured"], RESULTS["older dialect and bare, each part with a text"]]
    answers = [reply(json.dumps(one)) for one in dialects]
    command = hostile_server.command(
        tmp_path, dict(zip(("tools/call odd", "odd"), answers, strict=True))
    )
    async with model_service(saying(REPORT)) as model:
        more = {"LLM_BASE_URL": model.base_url, "LLM_MODEL": "small", "LLM_API_KEY": KEY}
        more["BRIDGE_LOG_FILE"] = str(path)
        said = "/call odd {}\n/bare on\n/call odd {}\n"
        ran = await asyncio.to_thread(run, tmp_path, said, "--", *command, more=more)
    first, dialect, second = ran.stdout.splitlines()
    assert first == second == BARE
    assert dialect.startswith("speaking bare")
    asked, _ = model.asked
    assert "tools" not in asked.body
    assert INSTRUCTION in asked.system
    assert '"city":"Ulm' in asked.user
    assert '"interpret"' not in asked.user
    assert KEY not in ran.stdout + ran.stderr + path.read_text()
    for told, time in ((ran.stderr, ""), (path.read_text(), r"\d{4}-\d\d-\d\dT[\d:.]+Z ")):
        pattern = rf"(?m)^\[Client\] {time}The model's service (is sent|answered 200) .*$"
        assert re.findall(pattern, told) == 2 * ["is sent", "answered 200"]


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (replying(401, {"error": {"message": "no such key"}}), "answered 401: no such key"),
        (saying("  \n"), "its answer is empty"),
    ],
)
async def test_without_a_report_the_data_is_shown_and_the_log_says_why(
    turn: Turn, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer = formatting.tool_result(RESULTS["structured"])
    async with model_service(turn) as model:
        interpret = interpreter_for(
            settings(tmp_path, LLM_BASE_URL=model.base_url, LLM_MODEL="small")
        )
        assert interpret is not None
        assert await interpret(answer) == answer
    assert re.search(rf"the model gave no report: .*{why}", caplog.text)


def test_wrong_settings_of_the_model_are_said_and_no_model_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert interpreter_for(settings(tmp_path)) is None
    assert caplog.text == ""
    assert interpreter_for(settings(tmp_path, LLM_BASE_URL="ftp://llm", LLM_MODEL="small")) is None
    assert re.search("WARNING .* no model is asked: .*LLM_BASE_URL holds", caplog.text)
