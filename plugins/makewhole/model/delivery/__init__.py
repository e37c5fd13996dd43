"""The delivery that a pipeline claims, and what weakens it."""
