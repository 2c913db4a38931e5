"""The MCP server: JSON-RPC to a coding agent over stdio. It knows nothing of XMPP."""
