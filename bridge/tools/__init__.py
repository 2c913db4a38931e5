"""The MCP tools, each a typed function: the only package that knows both `mcp` and `xmpp`."""
