"""`makewhole plan …`: show, preview, answer, steer and undo a plan."""
