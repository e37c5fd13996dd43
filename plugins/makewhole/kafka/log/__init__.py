"""Read the raw log, from brokers and archives alike: batches, records, and an account of every offset."""
