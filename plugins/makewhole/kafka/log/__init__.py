"""The raw log, from brokers and from archives alike: batches, records, and an account of every offset."""
