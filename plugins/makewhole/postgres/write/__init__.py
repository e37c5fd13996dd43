"""Write people's tables under guards, with receipts and effects in the same transaction."""
