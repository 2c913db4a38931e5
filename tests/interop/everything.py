"""A server of test tools, over the project's own wire: what the official suites ask of a server.

The names are those of `@modelcontextprotocol/conformance`. Everything here is written as a tool
of ours is written; what that cannot say is missing, and README.md tells why.

    python tests/interop/everything.py
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Annotated

from bridge.mcp.catalogue import Catalogue
from bridge.mcp.context import Context
from bridge.mcp.server import Implementation, Server
from bridge.mcp.session import Session
from bridge.mcp.stdio import Stdio
from bridge.mcp.toolset import Completes, ToolError, Toolset, prompt, resource, tool

STEP_SECONDS = 0.05
"""Between two notifications of one call, as the suite asks."""

ASKING_SECONDS = 10.0
"""For an answer of the suite."""

IMPLEMENTATION = Implementation("everything", "Everything", "1.0", "For tests only.")


@dataclass(frozen=True)
class Address:
    """A nested argument."""

    street: str
    city: str


@dataclass(frozen=True)
class StaticText:
    """A resource's content."""

    text: str


@dataclass(frozen=True)
class Watched:
    """A resource that can be subscribed to."""

    changes: int


@tool(title="Simple text", read_only=True, open_world=False)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool(title="Error", read_only=True, open_world=False)
def test_error_handling() -> str:
    """Fail, always."""
    raise ToolError(
        "This tool intentionally returns an error for testing",
        condition="undefined-condition",
        hint="Expect this.",
    )


@tool(title="Progress", read_only=True, open_world=False)
async def test_tool_with_progress(context: Context, /) -> str:
    """Report progress in three steps."""
    for done in (0, 50, 100):
        context.progress(done, 100, f"{done} of 100")
        await asyncio.sleep(STEP_SECONDS)
    return "Done."


@tool(title="Logging", read_only=True, open_world=False)
async def test_tool_with_logging(context: Context, /) -> str:
    """Write three log messages to the caller."""
    context.log("info", "Tool execution started")
    await asyncio.sleep(STEP_SECONDS)
    context.log("info", "Tool processing data")
    await asyncio.sleep(STEP_SECONDS)
    context.log("info", "Tool execution completed")
    return "Logged."


@tool(title="Logging", read_only=True, open_world=False)
async def test_logging_tool(context: Context, /) -> str:
    """Write a log message to the caller, if it asked for those."""
    context.log("error", "Only for whoever wants it")
    return "Logged."


@tool(title="Missing capability", read_only=True, requires=("sampling",))
def test_missing_capability() -> str:
    """Need something of the caller that few have."""
    return "You have it."


@tool(title="Sampling", read_only=True)
async def test_sampling(context: Context, /, prompt: str) -> str:
    """Have the caller's model answer."""
    result = await context.ask(
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": 100,
        },
        ASKING_SECONDS,
    )
    content = result["content"]
    assert isinstance(content, dict)
    return f"LLM response: {content['text']}"


@tool(title="Elicitation", read_only=True)
async def test_elicitation(context: Context, /, message: str) -> str:
    """Have the caller's user fill in a form."""
    answer = {"type": "string", "description": "User's response"}
    result = await context.ask(
        "elicitation/create",
        {
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": {"response": answer},
                "required": ["response"],
            },
        },
        ASKING_SECONDS,
    )
    return f"User response: {result['action']}, {result.get('content')}"


@tool(title="Streaming", read_only=True, open_world=False, requires=("elicitation",))
async def test_streaming_elicitation(context: Context, /) -> str:
    """Send something before the result; nothing is asked of the caller."""
    context.progress(1, 1)
    await asyncio.sleep(STEP_SECONDS)
    return "Nothing was asked."


@tool(title="A nested argument", read_only=True, open_world=False)
def json_schema_2020_12_tool(name: str = "", address: Address | None = None) -> str:
    """Take an argument that is an object."""
    return f"{name} {address}"


@resource("test://static-text", title="Static text")
def static_text() -> StaticText:
    """A text that never changes."""
    return StaticText("This is the content of the static text resource.")


@resource("test://watched-resource", title="Watched")
def watched() -> Watched:
    """Something to subscribe to."""
    return Watched(0)


@prompt("test_simple_prompt", title="Simple prompt")
def simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def cities() -> list[str]:
    """Values to complete from."""
    return ["paris", "park", "party", "testing"]


@prompt("test_prompt_with_arguments", title="Prompt with arguments")
def prompt_with_arguments(
    arg1: Annotated[str, "first test argument", Completes(cities)],
    arg2: Annotated[str, "second test argument"],
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


async def main() -> None:
    """Serve until the end of input."""
    stdio = Stdio.claim()
    tools = Toolset.of_modules("everything", sys.modules[__name__])
    session = Session(Server(IMPLEMENTATION, Catalogue(tools, [])), stdio.write)
    await session.run(stdio.chunks())
    await stdio.flush()
    stdio.close()


if __name__ == "__main__":
    asyncio.run(main())
