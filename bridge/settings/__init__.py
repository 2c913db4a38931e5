"""What the user said: the table of settings, where each is written, and what they come to."""
