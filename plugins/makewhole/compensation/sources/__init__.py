"""Read what sources have of the keys of findings: records by their places, rows by their keys, and how they compare."""
