"""The client's own model, asked with `sampling/createMessage` (MCP 2025-11-25, "Sampling")."""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.escaping import one_line
from bridge.llm.node import QUESTION_SECONDS
from bridge.llm.prompt import Prompt
from bridge.mcp.context import AskError, Context, NotAnsweredError, RefusedError
from bridge.mcp.jsonrpc import Json
from bridge.mcp.toolset import ToolError

METHOD = "sampling/createMessage"

MAX_TOKENS = 4_096
"""Of an answer; the request has to name a number."""

SHOWN_CHARACTERS = 200
"""Of what a client says when it refuses."""

_HINT = "Allow it when the client asks, or see in its log what became of its model."


@dataclass(frozen=True)
class Sampling:
    """The model of whoever called us."""

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
        try:
            result = await self.context.ask(METHOD, params, self.timeout_seconds)
        except RefusedError as error:
            said = one_line(error.message, SHOWN_CHARACTERS) or "without a reason"
            raise ToolError(
                f"The client did not let us use its model: {said} (code {error.code})",
                condition="not-allowed",
                hint=_HINT,
            ) from error
        except NotAnsweredError as error:
            raise ToolError(
                f"The client's model did not answer: {error}.",
                condition="remote-server-timeout",
                hint=_HINT,
            ) from error
        except AskError as error:
            raise ToolError(
                f"The client's model could not be used: {error}.",
                condition="undefined-condition",
                hint=_HINT,
            ) from error
        return _text_in(result)


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
