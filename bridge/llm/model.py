"""The model that does the work: the client's own where it offers one, else the user's endpoint.

A client's model is asked with `sampling/createMessage` (MCP 2025-11-25, "Sampling").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bridge.llm.endpoint import Endpoint
from bridge.llm.prompt import Prompt
from bridge.mcp.context import Context
from bridge.mcp.jsonrpc import Json
from bridge.mcp.toolset import ToolError
from bridge.settings.table import Configuration

METHOD = "sampling/createMessage"

QUESTION_SECONDS = 120.0
"""How long one question to a model may take; a client may show it to a person first."""

MAX_TOKENS = 4_096
"""Of an answer; the request has to name a number."""


class Model(Protocol):
    """A model that answers a prompt with text."""

    async def complete(self, prompt: Prompt) -> str:
        """Return the model's answer; raises `ToolError` when there is none."""


def model_for(configuration: Configuration, context: Context) -> Model:
    """Return the model for one call; raises `ToolError` where there is none."""
    if context.can_ask(METHOD):
        return Sampling(context)
    flaws = [str(one) for one in configuration.problems if one.variable.startswith("LLM_")]
    if flaws:
        raise ToolError(
            f"The settings of the model cannot be used: {'; '.join(flaws)}",
            condition="unconfigured",
            hint="Correct them and start the bridge again.",
        )
    base_url, model = configuration.llm_base_url, configuration.llm_model
    if base_url is None or model is None:
        wanted = {"LLM_BASE_URL": base_url, "LLM_MODEL": model}
        missing = " and ".join(name for name, value in wanted.items() if value is None)
        raise ToolError(
            "There is no model to do this: the client offers none for this call (sampling), and "
            f"{missing} {'is' if missing in wanted else 'are'} not set.",
            condition="unconfigured",
            hint="Set LLM_BASE_URL and LLM_MODEL (and LLM_API_KEY where one is needed), or use a "
            "client with sampling, over a revision of MCP before 2026-07-28.",
        )
    return Endpoint(base_url, model, configuration.llm_api_key)


@dataclass(frozen=True)
class Sampling:
    """The model of the client that made the call."""

    context: Context
    timeout_seconds: float = QUESTION_SECONDS

    async def complete(self, prompt: Prompt) -> str:
        """Return the model's answer; raises `ToolError`."""
        params: dict[str, Json] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt.message}}],
            "systemPrompt": prompt.instructions,
            "includeContext": "none",
            "maxTokens": MAX_TOKENS,
        }
        return _text_in(await self.context.ask(METHOD, params, self.timeout_seconds))


def _text_in(result: Mapping[str, Json]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [
        one["text"]
        for one in blocks
        if isinstance(one, dict) and one.get("type") == "text" and isinstance(one.get("text"), str)
    ]
    if not texts:
        raise ToolError(
            "The client's model answered with no text.",
            condition="undefined-condition",
            hint="Call it again; the client's log may say more.",
        )
    return "".join(texts)
