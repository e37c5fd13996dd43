"""Read the rest of a topic's log for keys that only it can decide, and remember what is in it."""
