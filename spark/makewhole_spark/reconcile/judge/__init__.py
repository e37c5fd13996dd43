"""Judge one bucket of a hop, on an executor: from the files that its task names, and by look-ups in tables."""
