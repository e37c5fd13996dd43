"""Kafka: the raw log of brokers and archives, offsets, producer sequences, and the replay producer."""
