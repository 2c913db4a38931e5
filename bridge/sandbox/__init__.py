"""A small XMPP server on the loopback interface, for trying the bridge out and for its tests."""
