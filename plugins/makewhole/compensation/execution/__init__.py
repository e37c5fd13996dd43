"""Execute a plan exactly once, chunk by chunk, and prove each chunk by a receipt."""
