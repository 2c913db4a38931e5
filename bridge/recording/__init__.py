"""What participants see, handed to the store and read back: what knows rooms and store."""
