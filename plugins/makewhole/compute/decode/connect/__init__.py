"""Decode what Kafka Connect and Debezium write: fields in an envelope, with the logical types of its schema."""
