"""Iceberg tables: read as of one snapshot, file by file, and written by commits that nothing came between."""
