"""A few tools, resources and prompts of every kind, for tests of what serves them."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from bridge.mcp import revisions
from bridge.mcp.asking import RequestStates
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.content import Interpret
from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Bounds
from bridge.mcp.server import Implementation, Server
from bridge.mcp.toolset import Completes, Toolset, prompt, resource, tool

IMPLEMENTATION = Implementation("sample", "Sample server", "1.2.3", "Ask count first.")


def states(clock: Callable[[], float] = lambda: 0.0) -> RequestStates:
    """The states of one server."""
    return RequestStates(map(str, itertools.count()).__next__, clock)


async def _ask(questions: object, timeout_seconds: float) -> Any:
    raise AssertionError(f"nobody is there to answer {questions}")


def _can_ask(method: str) -> bool:
    return False


UNASKED = (_can_ask, _ask)
QUIET = Context(lambda *_: None, lambda *_: None, *UNASKED)
"""The last two fields of a `Context` whose caller cannot be asked."""


class Workbench:
    """What a test and the tools it calls share."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.running = 0
        self.most_running = 0
        self.cleaned_up: list[str] = []
        self.people = ["Anna", "anton", "Berta"]


@dataclass(frozen=True)
class Count:
    words: int
    longest_word: str | None = None


@tool(title="Say", open_world=False)
def say(bench: Workbench, /, message: Annotated[str, Bounds(min_length=1)]) -> str:
    """Say it back."""
    bench.said.append(message)
    return f"Said: {message}"


@tool(title="Count words", read_only=True, open_world=False)
def count(text: str, at_most: Annotated[int, Bounds(minimum=1)] = 100) -> Count:
    """Count the words of a text."""
    words = text.split()
    if len(words) > at_most:
        raise ArgumentError("too many words", condition="not-acceptable", hint="Give fewer.")
    return Count(len(words), max(words, key=len, default=None))


@tool(title="Fail", read_only=True)
def fail() -> str:
    """Fail in the words of the standard."""
    raise ToolError("the room is gone", condition="gone", hint="Choose another.")


@tool(title="Break", read_only=True)
def break_down() -> str:
    """Break in our own words."""
    raise RuntimeError("a secret\nin two lines")


@tool(title="Overflow", read_only=True)
def overflow() -> dict[str, object]:
    """Return what JSON has no words for."""
    return {"much": float("inf")}


@tool(title="Read out", read_only=True, open_world=False)
def read_out(text: str) -> Interpret[Count]:
    """Count the words of a text, to be told in a sentence."""
    return Interpret(count(text=text), "Say it in a sentence.")


@tool(title="Wait", read_only=True)
async def wait(bench: Workbench, /, name: str = "") -> Count:
    """Wait until released."""
    bench.started.set()
    bench.running += 1
    bench.most_running = max(bench.most_running, bench.running)
    try:
        await bench.release.wait()
    finally:
        bench.running -= 1
        bench.cleaned_up.append(name)
    return Count(bench.most_running, name)


@tool(title="Wait in vain", read_only=True, deadline=0.01)
async def wait_in_vain(bench: Workbench, /) -> str:
    """Wait beyond the deadline."""
    try:
        await bench.release.wait()
    finally:
        bench.cleaned_up.append("in vain")
    return "released"


@tool(title="Time out", read_only=True)
async def time_out() -> str:
    """Break with the same error that a deadline is made of."""
    raise TimeoutError("not the deadline")


@tool(title="Break later", read_only=True)
async def break_later() -> str:
    """Break after a turn of the loop."""
    await asyncio.sleep(0)
    raise RuntimeError("a secret")


@tool(title="Lose", read_only=True)
async def lose() -> str:
    """Wait for something that is cancelled."""
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    lost.cancel()
    return await lost


@tool(title="Climb", read_only=True)
def climb(context: Context, /, heights: list[float]) -> str:
    """Tell of each height on the way, and of the top in the log."""
    for height in heights:
        context.progress(height, 9, f"at {height:g}")
    context.log("debug", "looked down")
    context.log("warning", {"top": max(heights, default=0)})
    return "up"


@tool(title="Climb slowly", read_only=True)
async def climb_slowly(bench: Workbench, context: Context, /) -> str:
    """Tell of the first step, wait until released, tell of the last in any case."""
    context.progress(1)
    bench.started.set()
    try:
        await bench.release.wait()
    finally:
        context.progress(2)
    return "up"


@tool(title="Ask back", read_only=True, requires=("elicitation",))
def ask_back() -> str:
    """Work with clients that can be asked only."""
    return "elicitation"


@resource("sample://words", title="Words so far")
def words(bench: Workbench, /) -> Count:
    """How much was said."""
    return Count(len(bench.said), max(bench.said, key=len, default=None))


@resource("sample://nothing", title="Nothing")
def nothing() -> Count:
    """Nothing at all."""
    return Count(0)


@resource("sample://broken", title="Broken")
def broken() -> Count:
    """Break in our own words."""
    raise RuntimeError("a secret")


@resource("sample://endless", title="Endless")
def endless() -> dict[str, object]:
    """Return what JSON has no words for."""
    return {"much": float("inf")}


def people(bench: Workbench, /) -> list[str]:
    """Whom a greeting may go to."""
    return bench.people


def nobody() -> list[str]:
    """Break in our own words."""
    raise RuntimeError("a secret")


@prompt("greet", title="Greet somebody")
def greet(
    name: Annotated[str, "whom", Completes(people)],
    mood: Annotated[str, Completes(nobody)] = "good",
    run: str = "",
) -> str:
    """Ask for a greeting."""
    return f"Greet {name} in a {mood} mood.{run}"


@prompt("falter", title="Falter")
def falter() -> str:
    """Break in our own words."""
    raise RuntimeError("a secret")


RESOURCES = (words, nothing, broken, endless)
PROMPTS = (greet, falter)
TOOLS = Toolset(
    "sample",
    (
        say,
        count,
        read_out,
        fail,
        break_down,
        overflow,
        wait,
        wait_in_vain,
        time_out,
        break_later,
        lose,
        climb,
        climb_slowly,
        ask_back,
    ),
    RESOURCES,
    PROMPTS,
)

STATELESS = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"

EVERY = pytest.mark.parametrize("revision", revisions.ALL, ids=lambda each: each.date)
"""For tests that hold in each revision."""


def serving(bench: Workbench, tools: Toolset = TOOLS) -> Server:
    """Return a server of all tools above, or of these."""
    return Server(IMPLEMENTATION, Catalogue(tools, [bench]), states())


def request(id_: Any, method: str, /, **params: object) -> dict[str, object]:
    """Return the JSON of a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def notification(method: str, /, **params: object) -> dict[str, object]:
    """Return the JSON of a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def tool_call(id_: Any, name: str, /, **arguments: object) -> dict[str, object]:
    """Return the JSON of `tools/call`."""
    return request(id_, "tools/call", name=name, arguments=arguments)


def envelope(revision: str = STATELESS, /, **others: object) -> dict[str, object]:
    """Return the `_meta` of a request that names its revision."""
    named = {
        f"{PREFIX}{key}" if key != "progressToken" else key: each for key, each in others.items()
    }
    return {f"{PREFIX}protocolVersion": revision, f"{PREFIX}clientCapabilities": {}, **named}


def stateless(id_: Any, method: str, /, **params: object) -> dict[str, object]:
    """Return the JSON of a request of 2026-07-28."""
    return request(id_, method, **({"_meta": envelope()} | params))
