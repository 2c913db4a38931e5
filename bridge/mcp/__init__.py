"""The MCP wing: JSON-RPC to a coding agent over stdio. It knows nothing of XMPP."""
