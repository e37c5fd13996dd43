"""Freeze: fetch what the actions will write, hash it, and commit plan and actions to the journal."""
