"""The recorder's store: the events of the rooms, kept beyond the end of the process."""
