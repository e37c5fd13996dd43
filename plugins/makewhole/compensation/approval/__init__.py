"""Approve: show the plan to a person and record the answer."""
