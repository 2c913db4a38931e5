"""All that a package of tools needs, in one place: the public way to write a tool.

    @tool(title="Mirror a text", read_only=True, open_world=False)
    def mirror(text: Annotated[str, Bounds(max_length=1000), "what to mirror"]) -> str:
        '''Write a text backwards. Returns the mirrored text.'''
        return text[::-1]

    TOOLS = Toolset("mirror", (mirror,))

Parameters before a `/` are not arguments of the caller: the bridge passes them by their type.

- `RoomLink`: the room, its journal and its connection.
- `Configuration`: the settings as they were read at the start.
- `Context`, the last of them: through it a call sends progress and log messages to its caller, and
  asks the user, the model, or for the roots.

If a call of an `async def` is cancelled, `asyncio.CancelledError` is raised in it. An `LlmNode` has
a model do the work of a tool. `serve` runs an MCP server that has only these tools. Pass what
strangers wrote through `visible` before you return it. `render` and `compact` give the JSON that a
result becomes, for tools that must keep to a size. A `WebService` answers with JSON, within limits
of time and size. If a reply has another form, the function that reads it raises `MismatchError`.
"""

from bridge.llm.httpclient import WebService as WebService
from bridge.llm.model import model_for as model_for
from bridge.llm.node import DEADLINE_SECONDS as DEADLINE_SECONDS
from bridge.llm.node import LlmNode as LlmNode
from bridge.llm.prompt import Material as Material
from bridge.llm.prompt import data_line as data_line
from bridge.mcp.asking import ROOTS as ROOTS
from bridge.mcp.asking import STATE_SECONDS as STATE_SECONDS
from bridge.mcp.asking import Elicitation as Elicitation
from bridge.mcp.asking import Question as Question
from bridge.mcp.asking import elicitation as elicitation
from bridge.mcp.asking import read_sampling as read_sampling
from bridge.mcp.asking import sampling as sampling
from bridge.mcp.content import Audio as Audio
from bridge.mcp.content import Content as Content
from bridge.mcp.content import EmbeddedResource as EmbeddedResource
from bridge.mcp.content import Image as Image
from bridge.mcp.content import Interpret as Interpret
from bridge.mcp.content import Message as Message
from bridge.mcp.content import ResourceLink as ResourceLink
from bridge.mcp.context import Context as Context
from bridge.mcp.errors import ArgumentError as ArgumentError
from bridge.mcp.errors import ToolError as ToolError
from bridge.mcp.jsonrpc import compact as compact
from bridge.mcp.schema import Bounds as Bounds
from bridge.mcp.schema import Keywords as Keywords
from bridge.mcp.schema import MismatchError as MismatchError
from bridge.mcp.schema import Schema as Schema
from bridge.mcp.schema import Titles as Titles
from bridge.mcp.schema import Unlisted as Unlisted
from bridge.mcp.schema import always as always
from bridge.mcp.schema import render as render
from bridge.mcp.toolset import DEFAULT_DEADLINE_SECONDS as DEFAULT_DEADLINE_SECONDS
from bridge.mcp.toolset import Completes as Completes
from bridge.mcp.toolset import Prompt as Prompt
from bridge.mcp.toolset import Tool as Tool
from bridge.mcp.toolset import Toolset as Toolset
from bridge.mcp.toolset import ToolsetError as ToolsetError
from bridge.mcp.toolset import prompt as prompt
from bridge.mcp.toolset import resource as resource
from bridge.mcp.toolset import tool as tool
from bridge.settings.table import Configuration as Configuration
from bridge.text import iso as iso
from bridge.text import visible as visible
from bridge.text import wire_name as wire_name
from bridge.toolkit.serving import serve as serve
from bridge.tools.link import RoomLink as RoomLink
