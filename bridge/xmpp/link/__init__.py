"""One connection to an XMPP server, from the address to the session, and the stanzas on it."""
