"""Read pipeline files and connections into the model; every problem is reported at once."""
