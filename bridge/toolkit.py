"""All that a package of tools needs, in one place: the public way to write a tool.

    @tool(title="Mirror a text", read_only=True, open_world=False)
    def mirror(text: Annotated[str, Bounds(max_length=1000), "what to mirror"]) -> str:
        '''Write a text backwards. Returns the mirrored text.'''
        return text[::-1]

    TOOLS = Toolset("mirror", (mirror,))

Parameters before a `/` are not the caller's: they are handed in by type. There are `RoomLink` (the
room, its journal and its connection), `Configuration` (the settings as they were read at the
start), and, last of them, `Context` (this call's way back to its caller: progress, log). A
cancelled call of an `async def` is an `asyncio.CancelledError` within it. Results that carry what
strangers wrote pass it through `visible`; `render` and `compact` give the JSON that a result
becomes, for those that must stay within a size. A `WebService` is asked for JSON, within a time and
a size; what reads its reply raises `MismatchError` for one of another form.
"""

from bridge.httpclient import WebService
from bridge.mcp.content import Interpret
from bridge.mcp.context import Context
from bridge.mcp.jsonrpc import compact
from bridge.mcp.schema import (
    ABSENT_IF_NONE,
    Bounds,
    Keywords,
    MismatchError,
    render,
    wire_name,
)
from bridge.mcp.toolset import (
    ArgumentError,
    Completes,
    Prompt,
    Resource,
    Tool,
    ToolError,
    Toolset,
    ToolsetError,
    prompt,
    resource,
    tool,
)
from bridge.settings.table import Configuration
from bridge.text import iso, visible
from bridge.tools.link import RoomLink

__all__ = [
    "ABSENT_IF_NONE",
    "ArgumentError",
    "Bounds",
    "Completes",
    "Configuration",
    "Context",
    "Interpret",
    "Keywords",
    "MismatchError",
    "Prompt",
    "Resource",
    "RoomLink",
    "Tool",
    "ToolError",
    "Toolset",
    "ToolsetError",
    "WebService",
    "compact",
    "iso",
    "prompt",
    "render",
    "resource",
    "tool",
    "visible",
    "wire_name",
]
