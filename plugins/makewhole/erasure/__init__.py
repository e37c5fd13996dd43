"""Erase a key on request, everywhere makewhole wrote it, and leave a signed record of what was done."""
