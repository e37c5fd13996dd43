"""Compile loops over bytes with numba, and hold byte strings as arrays, for everything that reads rows."""
