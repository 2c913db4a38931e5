"""Names what goes wrong on a client's own XMPP stream, from a log of its stanzas."""
