"""Finding out why something does not work: the way in checked, an occupant diagnosed."""
