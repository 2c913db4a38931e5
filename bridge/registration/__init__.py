"""Telling coding agents' programs how to start this bridge."""

KEYS = ("codex", "claude", "claude-desktop", "vscode", "cursor", "gemini")
"""What the user calls the clients on our command line."""
