"""Ask the journal about the windows before and after one, for no more of them than are needed."""
