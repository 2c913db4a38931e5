"""The interactive test client: an MCP client with a prompt."""
