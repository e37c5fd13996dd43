"""Verify a window: read the touched keys again from the real systems and judge them again."""
