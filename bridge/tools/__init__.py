"""The hall where the two wings meet: each tool is one typed function."""
