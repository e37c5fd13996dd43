"""Audit how producers number their records, and what a numbering proves."""
