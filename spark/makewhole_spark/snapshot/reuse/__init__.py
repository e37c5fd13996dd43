"""Reuse the files of an earlier revision's snapshots, of points that are shown to have the same content still."""
