"""Chunks of plans on datasets of files: decided once, kept beside the files, then applied file by file."""
