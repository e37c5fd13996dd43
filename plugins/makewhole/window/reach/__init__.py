"""Report how far the proof of a window reaches, and what it cannot exclude."""
