"""Decode record values that are Avro."""
