"""Data that comes with an instruction, shown by the client, with a model and without."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from bridge.client import formatting
from bridge.mcp.jsonrpc import Json
from bridge.samples.clock import PROMPT
from tests.client.piped import run
from tests.client.terminal import Terminal
from tests.llm.model_service import KEY, Turn, model_service, replying, saying

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
        'city: Ulm\\u{202E}\ndegrees: 7\nof: {\n  "a": null\n}\n\n'
        "How to read this: Tell it\nin a sentence."
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


CALLS = "/call current_time\n/bare on\n/call current_time\n"


async def _piped(home: Path, *turns: Turn, arguments: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """Return stdout, stderr, and what the model was asked first."""
    async with model_service(*turns) as model:
        settings = {"LLM_BASE_URL": model.base_url, "LLM_MODEL": "small", "LLM_API_KEY": KEY}
        options = ("--sandbox", "--toolset", "samples", *arguments)
        ran = await asyncio.to_thread(run, home, CALLS, *options, more=settings)
        assert ran.returncode == 0
        assert KEY not in ran.stdout + ran.stderr
        assert all("tools" not in one.body for one in model.asked)
        asked = model.asked[0].system + model.asked[0].user if model.asked else ""
    return ran.stdout, ran.stderr, asked


async def test_the_model_reports_on_the_data_and_its_words_are_the_answer(tmp_path: Path) -> None:
    said = "It is late.\n\u202eGood night."
    stdout, stderr, asked = await _piped(tmp_path, saying(said))
    first, dialect, second = stdout.splitlines()
    assert first == second == "It is late.\\u{A}\\u{202E}Good night."
    assert dialect.startswith("speaking bare")
    assert PROMPT in asked
    assert '"weekday":"' in asked
    assert '"interpret"' not in asked
    lines = [line for line in stderr.splitlines() if "The model's service" in line]
    kinds = [re.sub(r"[\d.]+", "N", line) for line in lines]
    assert kinds == 2 * [
        "[Client] The model's service is sent a POST of N bytes",
        "[Client] The model's service answered N with N bytes in N ms",
    ]


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (replying(401, {"error": {"message": "no such key"}}), "answered 401: no such key"),
        (saying("  \n"), "its answer is empty"),
    ],
)
async def test_without_a_report_the_data_is_shown_and_the_log_says_why(
    tmp_path: Path, turn: Turn, why: str
) -> None:
    stdout, stderr, _ = await _piped(tmp_path, turn)
    first, _, second = stdout.splitlines()
    for line in (first, second):
        assert json.loads(line)["interpret"] == PROMPT
        assert "weekday" in json.loads(line)
    assert f"{why}" in stderr
    assert "[Client] WARNING: the model gave no report: " in stderr


async def test_a_program_gets_the_data_as_it_came(tmp_path: Path) -> None:
    stdout, _, asked = await _piped(tmp_path, saying("no"), arguments=("--json",))
    assert json.loads(stdout.splitlines()[0])["structuredContent"]["interpret"] == PROMPT
    assert asked == ""


def test_wrong_settings_of_the_model_are_said_and_the_data_is_shown(tmp_path: Path) -> None:
    settings = {"LLM_BASE_URL": "ftp://llm", "LLM_MODEL": "small"}
    ran = run(tmp_path, CALLS, "--sandbox", "--toolset", "samples", more=settings)
    assert "[Client] WARNING: no model is asked: The settings of the model cannot" in ran.stderr
    assert "LLM_BASE_URL holds" in ran.stderr
    assert json.loads(ran.stdout.splitlines()[0])["interpret"] == PROMPT


async def test_a_person_reads_the_report_and_the_log_file_has_the_exchange_with_its_times(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"

    def talk(settings: dict[str, str]) -> str:
        options = ["--sandbox", "--toolset", "samples"]
        with Terminal(tmp_path, options, {"TERM": "dumb", **settings}) as terminal:
            terminal.until("echo> ")
            terminal.type("/call current_time\n")
            terminal.until(" ms)\n")
            return terminal.written.replace("\r", "")

    async with model_service(saying("It is late.")) as model:
        settings = {"LLM_BASE_URL": model.base_url, "LLM_MODEL": "small", "LLM_API_KEY": KEY}
        settings |= {"BRIDGE_LOG_FILE": str(path), "LOG_LEVEL": "ERROR"}
        written = await asyncio.to_thread(talk, settings)
    assert "\nIt is late.\n(" in written
    assert "weekday" not in written
    assert "The model's service" not in written
    logged = re.compile(r"(?m)^\[Client\] \d{4}-\d\d-\d\dT[\d:.]+Z The model's service .*$")
    sent, answered = logged.findall(path.read_text())[:2]
    assert " is sent a POST of " in sent
    assert " answered 200 with " in answered
    assert KEY not in path.read_text()
