"""A participant in an XMPP chat room that a coding agent can see through and speak through."""

__version__ = "0.1.0"
