"""Decode record values that are Protobuf."""
