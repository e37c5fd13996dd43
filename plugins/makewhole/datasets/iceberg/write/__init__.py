"""Chunks of plans on Iceberg tables: decided by one snapshot, kept in a table beside them, committed as one more."""
