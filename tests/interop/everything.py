"""A server of test tools, over the project's own wire: what the official suites ask of a server.

The names are those of `@modelcontextprotocol/conformance`. Everything here is written as a tool
of ours is written; what that cannot say is missing, and README.md tells why.

    python tests/interop/everything.py
"""

import asyncio
import sys
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated

from bridge.mcp.catalogue import Catalogue
from bridge.mcp.content import Audio, Content, EmbeddedResource, Image
from bridge.mcp.context import Context
from bridge.mcp.schema import Schema
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


SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""As the suite writes it, to see whether it comes back so."""


@tool(title="A schema by hand", read_only=True, open_world=False, input_schema=SCHEMA)
def json_schema_2020_12_tool(arguments: dict[str, object]) -> str:
    """Take what the schema says."""
    return ", ".join(arguments)


PIXEL = Image(
    b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
        "=="
    ),
    "image/png",
)
"""One pixel."""

SILENCE = Audio(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0",
    "audio/wav",
)
"""A recording without a sample."""


@tool(title="An image", read_only=True, open_world=False)
def test_image_content() -> Image:
    """Return a picture."""
    return PIXEL


@tool(title="A sound", read_only=True, open_world=False)
def test_audio_content() -> Audio:
    """Return a sound."""
    return SILENCE


@tool(title="A resource", read_only=True, open_world=False)
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource with its content."""
    text = "This is an embedded resource content."
    return EmbeddedResource("test://embedded-resource", text, "text/plain")


@tool(title="Several", read_only=True, open_world=False)
def test_multiple_content_types() -> list[Content]:
    """Return content of several types."""
    json = '{"test":"data","value":123}'
    resource_ = EmbeddedResource("test://mixed-content-resource", json, "application/json")
    return ["Multiple content types test:", PIXEL, resource_]


@resource("test://static-binary", title="Static binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes."""
    return PIXEL.data


@dataclass(frozen=True)
class TemplateData:
    """A resource's content."""

    id: str
    template_test: bool
    data: str


@resource("test://template/{id}/data", title="Template")
def template(id: str) -> TemplateData:  # noqa: A002 - the suite's name of the variable
    """What stands under an id."""
    return TemplateData(id, template_test=True, data=f"Data for ID: {id}")


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


@prompt("test_prompt_with_embedded_resource", title="Prompt with a resource")
def prompt_with_embedded_resource(
    resource_uri: Annotated[str, "URI of the resource to embed"],
) -> list[Content]:
    """A prompt with a resource in it."""
    text = "Embedded resource content for testing."
    embedded = EmbeddedResource(resource_uri, text, "text/plain")
    return [embedded, "Please process the embedded resource above."]


@prompt("test_prompt_with_image", title="Prompt with an image")
def prompt_with_image() -> list[Content]:
    """A prompt with a picture in it."""
    return [PIXEL, "Please analyze the image above."]


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
