"""Run `makewhole plan …`: show, preview, answer, control and undo a plan."""
