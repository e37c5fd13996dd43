"""Configuration: pipeline files and connections, read into the model; every problem is reported at once."""
