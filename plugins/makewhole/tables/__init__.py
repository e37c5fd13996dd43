"""Name what can be done with tables, whatever system keeps them: what is read, written and known of their rows."""
