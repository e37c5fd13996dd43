"""Store files of snapshots and evidence on any file system that pyarrow or fsspec can reach."""
