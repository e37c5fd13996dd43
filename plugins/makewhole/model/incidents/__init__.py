"""Describe incidents in words: what happened, and what settles it."""
