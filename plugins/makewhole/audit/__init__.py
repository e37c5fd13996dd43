"""A topic audited by itself: what its log proves, what its settings promise, and what neither can."""
