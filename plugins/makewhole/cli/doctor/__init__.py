"""Command `makewhole doctor`."""
