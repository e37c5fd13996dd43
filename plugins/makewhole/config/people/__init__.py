"""Read who may answer, and who is to know."""
