"""The views for people in a terminal: the check, the rooms live, and recorded events."""
