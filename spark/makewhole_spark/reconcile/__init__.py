"""Compare the snapshots of a window: one kernel per bucket and hop, look-ups that confirm, findings, roll-up."""
