"""Gather, on the driver, what is known of the keys of a hop from elsewhere: the journal, Kafka, and other windows."""
