"""Write people's tables: guarded, with receipts and effects in the same transaction."""
