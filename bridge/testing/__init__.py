"""Tests of XMPP bots: a pytest plugin, actors in a room, and the server for bot and actors."""
