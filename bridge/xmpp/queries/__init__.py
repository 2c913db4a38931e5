"""Queries to servers, rooms and occupants, and the meaning of an answer or of silence."""
