"""Execute: carry a plan out exactly once, chunk by chunk, from receipts to receipts."""
