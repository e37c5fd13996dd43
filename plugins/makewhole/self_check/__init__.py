"""The rounds of a self-check: plant known faults, load as people's own programs do, compare what a window found."""
