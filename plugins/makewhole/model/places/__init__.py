"""Name places: paths in records, the columns of datasets and of sinks that say how far, or from where."""
