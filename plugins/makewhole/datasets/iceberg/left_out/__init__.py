"""Name the files of a snapshot that are gone or do not decode, and the keys that these may hold."""
