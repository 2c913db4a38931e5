"""Registers this bridge with the programs of coding agents, so that they can start it."""

KEYS = ("codex", "claude", "claude-desktop", "vscode", "cursor", "gemini")
"""The names of the clients on our command line."""
