"""Name the files of a snapshot that are gone or do not decode, the keys that these may hold, and what a view has seen."""
