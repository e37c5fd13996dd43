"""One archive of a window for an auditor: written from the journal, and checked without it."""
