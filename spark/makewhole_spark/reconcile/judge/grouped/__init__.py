"""Judge a bucket of a hop on which many records become one row."""
