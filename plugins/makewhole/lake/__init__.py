"""Store files of snapshots and evidence in folders and object stores."""
