"""Repair what was found: plan, freeze, preview, approve, run exactly once, verify, undo."""
