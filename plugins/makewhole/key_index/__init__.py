"""Keep the index of every key ever seen on a topic: its files, and the merges that keep them few."""
