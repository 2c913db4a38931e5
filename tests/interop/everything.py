"""A server of test tools: what the official suites ask of a server.

The names are those of `@modelcontextprotocol/conformance`. Everything here is written as any third
party writes tools: of the bridge it imports the toolkit, and nothing else.

    python tests/interop/everything.py
"""

import asyncio
import sys
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from bridge.toolkit import (
    ROOTS,
    Audio,
    Completes,
    Content,
    Context,
    EmbeddedResource,
    Image,
    Keywords,
    Schema,
    Titles,
    ToolError,
    Toolset,
    elicitation,
    prompt,
    read_sampling,
    resource,
    sampling,
    serve,
    tool,
)

STEP_SECONDS = 0.05
"""Between two notifications of one call, as the suite asks."""

ASKING_SECONDS = 10.0
"""For an answer of the suite."""


@dataclass(frozen=True)
class UserResponse:
    response: Annotated[str, "User's response"]


@dataclass(frozen=True)
class StaticText:
    text: str


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
    for step in ("execution started", "processing data", "execution completed"):
        context.log("info", f"Tool {step}")
        await asyncio.sleep(STEP_SECONDS)
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
    answers = await context.ask({"it": sampling(prompt, max_tokens=100)}, ASKING_SECONDS)
    return f"LLM response: {read_sampling(answers['it'])}"


@tool(title="Elicitation", read_only=True)
async def test_elicitation(context: Context, /, message: str) -> str:
    """Have the caller's user fill in a form."""
    answer = await context.elicit(message, UserResponse)
    return f"User response: {answer.action}, {answer.content}"


@dataclass(frozen=True)
class Defaults:
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@tool(title="Defaults", read_only=True)
async def test_elicitation_sep1034_defaults(context: Context, /) -> str:
    """Have the caller's user fill in a form that is filled in already."""
    answer = await context.elicit("Is that right?", Defaults)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


Option: TypeAlias = Literal["option1", "option2", "option3"]
Value: TypeAlias = Literal["value1", "value2", "value3"]


@dataclass(frozen=True)
class Choices:
    untitled_single: Option
    titled_single: Annotated[Value, Titles(value1="First Option", value2="Two", value3="Three")]
    legacy_enum: Annotated[
        Literal["opt1", "opt2", "opt3"],
        Keywords(enumNames=["Option One", "Option Two", "Option Three"]),
    ]
    untitled_multi: list[Option]
    titled_multi: Annotated[
        list[Value], Titles(value1="First Choice", value2="Second Choice", value3="Third Choice")
    ]


@tool(title="Choices", read_only=True)
async def test_elicitation_sep1330_enums(context: Context, /) -> str:
    """Have the caller's user choose."""
    answer = await context.elicit("What will it be?", Choices)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Colour:
    color: str


@dataclass(frozen=True)
class Consent:
    ok: bool


@dataclass(frozen=True)
class About:
    context: str


@tool(title="Ask the user", read_only=True)
async def test_input_required_result_elicitation(context: Context, /) -> str:
    """Greet the caller's user by name."""
    answer = await context.elicit("What is your name?", Name, name="user_name")
    return f"Hello, {answer.content.name}!" if answer.content else "Hello!"


@tool(title="Ask the model", read_only=True)
async def test_input_required_result_sampling(context: Context, /) -> str:
    """Have the caller's model answer."""
    question = sampling("What is the capital of France?", max_tokens=100)
    answers = await context.ask({"capital_question": question}, ASKING_SECONDS)
    return read_sampling(answers["capital_question"])


@tool(title="Ask for the roots", read_only=True)
async def test_input_required_result_list_roots(context: Context, /) -> str:
    """Tell what folders the caller works in."""
    answers = await context.ask({"client_roots": ROOTS}, ASKING_SECONDS)
    return str(answers["client_roots"]["roots"])


async def confirmed(context: Context, /) -> str:
    """Ask for a yes that counts for this call alone."""
    await context.elicit("Please confirm", Consent, name="confirm", consent=True)
    return "state-ok"


request_state = tool("test_input_required_result_request_state", title="Confirm")(confirmed)
tampered_state = tool("test_input_required_result_tampered_state", title="Confirm")(confirmed)

QUESTIONS = {
    "user_name": elicitation("What is your name?", Name),
    "greeting": sampling("Generate a greeting", max_tokens=50),
}


@tool(title="Ask several", read_only=True)
async def test_input_required_result_multiple_inputs(context: Context, /) -> str:
    """Ask the caller's user and model, and for the roots."""
    return ", ".join(await context.ask({**QUESTIONS, "client_roots": ROOTS}, ASKING_SECONDS))


@tool(title="Ask twice", read_only=True)
async def test_input_required_result_multi_round(context: Context, /) -> str:
    """Ask one thing after another."""
    first = await context.elicit("Step 1: What is your name?", Name, name="step1")
    second = await context.elicit("Step 2: What is your favorite color?", Colour, name="step2")
    return f"{first.content}, {second.content}"


@tool(title="Ask whom one can", read_only=True)
async def test_input_required_result_capabilities(context: Context, /) -> str:
    """Ask the caller what it can be asked."""
    possible = {name: each for name, each in QUESTIONS.items() if context.can_ask(each.method)}
    return ", ".join(await context.ask(possible, ASKING_SECONDS))


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
def watched() -> StaticText:
    """Something to subscribe to."""
    return StaticText("This never changes.")


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


@prompt("test_input_required_result_prompt", title="Prompt that asks")
async def prompt_that_asks(context: Context, /) -> str:
    """A prompt that is written when the user has said what it is about."""
    question = "What context should the prompt use?"
    answer = await context.elicit(question, About, name="user_context")
    return f"Use this context: {answer.content}"


@prompt("test_prompt_with_image", title="Prompt with an image")
def prompt_with_image() -> list[Content]:
    """A prompt with a picture in it."""
    return [PIXEL, "Please analyze the image above."]


if __name__ == "__main__":
    tools = Toolset.of_modules("everything", sys.modules[__name__])
    serve("everything", "1.0", [tools], instructions="For tests only.")
