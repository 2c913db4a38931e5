"""What can happen in a room, and what that adds up to: values, without I/O and without slixmpp."""
