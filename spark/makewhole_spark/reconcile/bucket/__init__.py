"""Define what the driver gathers for a bucket of a hop, and what an executor answers."""
