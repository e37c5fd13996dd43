"""List what waits for a person, and send it to them."""
