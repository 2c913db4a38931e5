"""Which model is asked, and what becomes of a client's answer."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bridge.llm.model import METHOD, QUESTION_SECONDS, completed, model_for, sampled
from bridge.llm.prompt import ModelPrompt
from bridge.mcp.asking import Question
from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.settings.load import load
from bridge.settings.table import Configuration
from bridge.settings.values import Secret
from tests.llm.model_service import KEY

PROMPT = ModelPrompt("Be brief.", "Say hello.")
ENDPOINT = {"LLM_BASE_URL": "http://127.0.0.1:1/v1", "LLM_MODEL": "small", "LLM_API_KEY": KEY}


def settings(home: Path, **environ: str) -> Configuration:
    return load(environ, cwd=home, package_root=home / "package")


def context(*answers: Mapping[str, object], asked: list[Any] | None = None) -> Context:
    """A client that can be asked exactly if it has answers."""
    left = list(answers)

    async def put(questions: Mapping[str, Question], seconds: float) -> Any:
        ((name, question),) = questions.items()
        if asked is not None:
            asked.append((question.method, question.params, seconds))
        return {name: left.pop(0)}

    return Context(
        lambda *_: None, lambda *_: None, lambda method: bool(answers) and method == METHOD, put
    )


def test_a_clients_own_model_comes_first_and_else_the_endpoint(tmp_path: Path) -> None:
    def chosen(client: Context, **environ: str) -> tuple[object, ...]:
        model: Any = model_for(settings(tmp_path, **environ), client)
        return model.func, *model.args

    own = context({})
    assert chosen(own, **ENDPOINT)[:2] == (sampled, own)
    assert chosen(own)[:2] == (sampled, own)
    endpoint = (completed, "http://127.0.0.1:1/v1", "small")
    assert chosen(context(), **ENDPOINT) == (*endpoint, Secret(KEY))
    keyless = {name: value for name, value in ENDPOINT.items() if name != "LLM_API_KEY"}
    assert chosen(context(), **keyless) == (*endpoint, None)


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        (("LLM_BASE_URL", "LLM_MODEL"), "LLM_BASE_URL and LLM_MODEL are not set"),
        (("LLM_MODEL",), "LLM_MODEL is not set"),
    ],
)
def test_without_either_it_says_what_to_do(
    left_out: tuple[str, ...], missing: str, tmp_path: Path
) -> None:
    environ = {name: value for name, value in ENDPOINT.items() if name not in left_out}
    with pytest.raises(ToolError) as caught:
        model_for(settings(tmp_path, **environ), context())
    assert missing in caught.value.message
    assert "sampling" in caught.value.message
    for name in ("LLM_BASE_URL", "LLM_MODEL", "sampling"):
        assert name in caught.value.hint
    assert caught.value.condition == "unconfigured"


@pytest.mark.parametrize(
    ("name", "value"), [("LLM_BASE_URL", "example"), ("LLM_API_KEY", f"{KEY} and more")]
)
def test_a_setting_that_does_not_do_is_told_and_nothing_asked(
    name: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(ToolError) as caught:
        model_for(settings(tmp_path, **(ENDPOINT | {name: value})), context())
    assert name in caught.value.message
    assert KEY not in caught.value.message


TEXT = {"type": "text", "text": "hello"}


@pytest.mark.parametrize("content", [TEXT, [TEXT], [{"type": "image", "data": "x"}, TEXT]])
async def test_a_client_is_asked_for_a_message_and_its_text_is_the_answer(content: object) -> None:
    asked: list[Any] = []
    client = context({"role": "assistant", "content": content}, asked=asked)
    assert await sampled(client, count(1), PROMPT) == "hello"
    ((method, params, seconds),) = asked
    assert (method, seconds) == (METHOD, QUESTION_SECONDS)
    assert params["systemPrompt"] == "Be brief."
    assert params["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Say hello."}}
    ]
    assert params["includeContext"] == "none"
    assert params["maxTokens"] > 0


@pytest.mark.parametrize("content", [None, [], {"type": "image"}, {"type": "text", "text": 7}])
async def test_an_answer_without_text_is_told(content: object) -> None:
    with pytest.raises(ToolError, match="no text") as caught:
        await sampled(context({"content": content}), count(1), PROMPT)
    assert caught.value.remote
