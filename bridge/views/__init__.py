"""What people read in a terminal: results of tools, the check, the rooms, and what was recorded."""
