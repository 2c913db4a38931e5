"""The participant in the XMPP chat rooms. It knows nothing of MCP."""
