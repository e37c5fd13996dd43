"""One key's journey: where it is now, what was said of it, and what was done about it."""
