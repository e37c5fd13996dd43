"""Scan a topic by its batch headers alone, for the audit."""
