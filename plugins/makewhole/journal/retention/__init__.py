"""Find in the journal what was kept long enough to be removed, and record what was."""
