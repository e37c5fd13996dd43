"""Read catalogues, and which options of clients a connection may set."""
