"""What is asked of servers, rooms and occupants, and what an answer or a silence means."""
