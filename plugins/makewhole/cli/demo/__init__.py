"""`makewhole demo`: real flights go wrong, are found, repaired and proven whole."""
