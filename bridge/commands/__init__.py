"""The commands of `xmpp-bridge`, one module each, whose `run` returns the exit code."""
