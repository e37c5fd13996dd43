"""Audit a topic by itself: what its log proves, what its settings guarantee, and what neither can."""
