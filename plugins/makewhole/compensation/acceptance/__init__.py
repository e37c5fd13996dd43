"""Accept findings as they are by a person's word: ask, answer, revoke, and open again what changed since."""
