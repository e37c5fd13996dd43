"""Approve a plan: show it to a person and record the answer."""
