"""The XMPP wing: one participant in one chat room. It knows nothing of MCP."""
