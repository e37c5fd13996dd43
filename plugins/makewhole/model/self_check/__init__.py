"""What a self-check plants, finds, and says of it."""
