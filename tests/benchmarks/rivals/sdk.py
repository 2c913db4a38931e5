"""An echo server on the official SDK's low-level server."""

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}


async def list_tools(_: object, __: object) -> types.ListToolsResult:
    tool = types.Tool(name="echo", description="Give back a message.", input_schema=SCHEMA)
    return types.ListToolsResult(tools=[tool])


async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    said = (params.arguments or {})["message"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"Echo: {said}")])


async def main() -> None:
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
