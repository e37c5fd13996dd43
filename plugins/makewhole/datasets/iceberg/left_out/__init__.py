"""Name files of a snapshot that are gone or do not decode, the keys that they may hold, and what a view has seen."""
