"""The model that does the work: the client's own where it offers one, else the user's endpoint.

The bridge asks a client's model with `sampling/createMessage` (MCP, "Sampling"). It asks an
endpoint with chat completions, the HTTP API of OpenAI that many services speak.
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import count
from typing import TypeAlias

from bridge.llm.httpclient import WebService
from bridge.llm.prompt import ModelPrompt
from bridge.mcp.asking import read_sampling, sampling
from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.mcp.jsonrpc import Json
from bridge.mcp.schema import MismatchError
from bridge.settings.table import Configuration
from bridge.settings.values import Secret

METHOD = "sampling/createMessage"

QUESTION_SECONDS = 120.0
"""How long one question to a client's model may take; the client may show it to a person first."""

MAX_TOKENS = 4_096
"""The longest answer, in tokens; a request has to name a number."""

ANSWER_SECONDS = 90.0
"""How long a question to an endpoint may take in all."""

Model: TypeAlias = Callable[[ModelPrompt], Coroutine[object, object, str]]
"""Answers a prompt with text; raises `ToolError` when there is no answer."""

SECRET_CHARACTERS = 12
"""A key of at least this length is masked in answers. A shorter one, such as `none` for a service
that ignores the key, may be an ordinary word of an answer."""


def model_for(configuration: Configuration, context: Context) -> Model:
    """Return the model for one call: the client's, or else the model that the settings name.

    Raises `ToolError` if there is none, or if the settings of the model are wrong.
    """
    if context.can_ask(METHOD):
        return partial(sampled, context, count(1))
    flaws = [str(flaw) for flaw in configuration.problems if flaw.variable.startswith("LLM_")]
    if flaws:
        raise ToolError(
            f"The settings of the model cannot be used: {'; '.join(flaws)}",
            condition="unconfigured",
            hint="Correct them and start the bridge again.",
        )
    base_url, model = configuration.llm_base_url, configuration.llm_model
    if base_url is None or model is None:
        wanted = ("LLM_BASE_URL", "LLM_MODEL")
        missing = " and ".join(name for name in wanted if configuration.loaded[name] is None)
        raise ToolError(
            "There is no model to do this: the client offers none for this call (sampling), and "
            f"{missing} {'is' if missing in wanted else 'are'} not set.",
            condition="unconfigured",
            hint="Set LLM_BASE_URL and LLM_MODEL (and LLM_API_KEY where one is needed), or use a "
            "client with sampling.",
        )
    return partial(completed, base_url, model, configuration.llm_api_key)


async def sampled(context: Context, numbers: Iterator[int], prompt: ModelPrompt) -> str:
    """Return the answer of the client's model; raises `ToolError`.

    `numbers` tell the questions of one call apart.
    """
    name = f"answer-{next(numbers)}"
    question = sampling(prompt.message, max_tokens=MAX_TOKENS, instructions=prompt.instructions)
    answers = await context.ask({name: question}, QUESTION_SECONDS)
    if not (text := read_sampling(answers[name])):
        raise ToolError(
            "The client's model answered with no text.",
            condition="undefined-condition",
            hint="Call it again; the client's log may say more.",
            remote=True,
        )
    return text


async def completed(base_url: str, model: str, key: Secret | None, prompt: ModelPrompt) -> str:
    """Return the answer of a model at an HTTP address that the user set; raises `ToolError`.

    `base_url` is as in `LLM_BASE_URL`; `/chat/completions` is appended to it. Cancelling closes the
    connection.
    """
    service = WebService(
        "The model's service",
        base_url,
        "LLM_BASE_URL (usually it ends in /v1), LLM_API_KEY and LLM_MODEL",
        key,
    )
    question = {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt.instructions},
            {"role": "user", "content": prompt.message},
        ],
        "stream": False,
    }
    answer = await service.ask(
        "chat/completions", _completion_in, seconds=ANSWER_SECONDS, body=question
    )
    secret = "" if key is None else key.reveal()
    return answer.replace(secret, "***") if len(secret) >= SECRET_CHARACTERS else answer


def _completion_in(reply: Json) -> str:
    match reply:
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]}:
            raise MismatchError(f"the model refused: {refusal}")
    raise MismatchError("it is no chat completion, which has text in choices[0].message.content")
