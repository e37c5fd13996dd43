"""What can be removed because it was kept long enough, and what was."""
