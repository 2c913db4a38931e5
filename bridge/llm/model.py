"""The model that does the work: the client's own where it offers one, else the user's endpoint.

The bridge asks a client's model with `sampling/createMessage` (MCP, "Sampling"). It asks an
endpoint with chat completions, the HTTP API of OpenAI that many services speak.
"""

from dataclasses import dataclass
from typing import Protocol

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

SECRET_CHARACTERS = 12
"""A key of at least this length is masked in answers. A shorter one, such as `none` for a service
that ignores the key, may be an ordinary word of an answer."""


class Model(Protocol):
    """A model that answers a prompt with text."""

    async def complete(self, prompt: ModelPrompt) -> str:
        """Return the model's answer; raises `ToolError` when there is none."""


def model_for(configuration: Configuration, context: Context) -> Model:
    """Return the model for one call: the client's, or else the model that the settings name.

    Raises `ToolError` if there is none, or if the settings of the model are wrong.
    """
    if context.can_ask(METHOD):
        return Sampling(context)
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
    return ChatCompletions(base_url, model, configuration.llm_api_key)


class Sampling:
    """The model of the client that made the call."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked = 0

    async def complete(self, prompt: ModelPrompt) -> str:
        """Return the model's answer; raises `ToolError`."""
        self._asked += 1
        name = f"answer-{self._asked}"
        question = sampling(prompt.message, max_tokens=MAX_TOKENS, instructions=prompt.instructions)
        answers = await self._context.ask({name: question}, QUESTION_SECONDS)
        if not (text := read_sampling(answers[name])):
            raise ToolError(
                "The client's model answered with no text.",
                condition="undefined-condition",
                hint="Call it again; the client's log may say more.",
                remote=True,
            )
        return text


@dataclass(frozen=True)
class ChatCompletions:
    """A model at an HTTP address that the user set."""

    base_url: str
    """As in `LLM_BASE_URL`; `/chat/completions` is appended to it."""
    model: str
    key: Secret | None = None

    async def complete(self, prompt: ModelPrompt) -> str:
        """Return the model's answer; raises `ToolError`. Cancelling closes the connection."""
        service = WebService(
            "The model's service",
            self.base_url,
            "LLM_BASE_URL (usually it ends in /v1), LLM_API_KEY and LLM_MODEL",
            self.key,
        )
        question = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.message},
            ],
            "stream": False,
        }
        answer = await service.ask(
            "chat/completions", _completion_in, seconds=ANSWER_SECONDS, body=question
        )
        key = "" if self.key is None else self.key.reveal()
        return answer.replace(key, "***") if len(key) >= SECRET_CHARACTERS else answer


def _completion_in(reply: Json) -> str:
    match reply:
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]}:
            raise MismatchError(f"the model refused: {refusal}")
    raise MismatchError("it is no chat completion, which has text in choices[0].message.content")
