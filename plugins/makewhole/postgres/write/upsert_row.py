"""Describe one key to be written into a store, and encode it for statements of one row and of many."""
