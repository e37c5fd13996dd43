"""Loops over bytes that numba compiles, and byte strings as arrays. Below everything that reads rows."""
