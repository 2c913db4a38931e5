"""The page: a picture of what happened in rooms, on a stream or in scenarios."""
