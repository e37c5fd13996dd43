"""Check pipeline files, and ask every system that they name."""
