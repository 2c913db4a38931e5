"""The events in a room, and the state that they add up to: values, without I/O or slixmpp."""
