"""What people look at in a terminal: the check, the rooms live, what was recorded."""
