"""Decode record values: JSON bytes to the key and the compared columns, as canonical text."""
