"""Read and write which files the key index is made of."""
