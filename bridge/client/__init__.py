"""The interactive client of MCP servers."""
