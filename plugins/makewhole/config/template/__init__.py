"""Check and render the templates of compensating events."""
