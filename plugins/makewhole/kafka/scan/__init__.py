"""A topic by its batch headers alone: what the audit reads."""
