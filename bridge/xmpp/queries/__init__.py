"""Queries to servers, rooms and occupants, and what an answer or the lack of one means."""
