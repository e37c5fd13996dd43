"""Trace one key: where it is now, what was said of it, and what was done about it."""
