"""Compute what the key index is made of: filters, the rows of its files, and which runs are merged."""
