"""Undo: a plan that takes another plan back, and the state of its window afterwards."""
