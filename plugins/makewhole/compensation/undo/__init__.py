"""Undo a plan: freeze the plan that takes it back, and judge the window again afterwards."""
