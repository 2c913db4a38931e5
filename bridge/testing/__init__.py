"""Tests of XMPP bots: a pytest plugin, actors in a room, and the server that both live on."""
