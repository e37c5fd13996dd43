"""Hold the faults that a self-check plants, and the score of a round."""
