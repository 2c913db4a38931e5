"""The settings: a table of variables, the files in which they are written, and their loading."""
