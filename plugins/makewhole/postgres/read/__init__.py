"""Read people's tables: consistent export, look-ups by key, visibility."""
