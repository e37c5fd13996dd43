"""Sign documents with Ed25519 and check signatures; keys from the environment, a connection or files."""
