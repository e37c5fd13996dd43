"""Write a window's part of the key index, and ask the index for the keys of a bucket."""
