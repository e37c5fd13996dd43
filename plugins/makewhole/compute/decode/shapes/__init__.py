"""Formats around formats: numbers that count moments, and records that are divided into elements."""
