"""Freeze a plan: fetch what its actions write, hash it, and commit plan and actions to the journal."""
