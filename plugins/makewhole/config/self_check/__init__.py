"""Pipelines that makewhole checks itself with: their file names connections, and the rest is made of it."""
