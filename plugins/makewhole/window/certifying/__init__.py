"""Certify a window, chain its certificate to those before it, and check a chain."""
