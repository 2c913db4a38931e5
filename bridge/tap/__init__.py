"""Stands between a bot and its server: passes on what both say, and says what goes wrong."""
