"""Choose the records of a window that are published, read them from its archive, and write what changed."""
