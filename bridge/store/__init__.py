"""The recorder's store: what happened in the rooms, kept beyond the end of the process."""
