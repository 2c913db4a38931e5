"""The MCP tools that look at rooms and speak in them: each is one typed function."""
