"""Decode, hash, compare and judge: pure functions over Arrow and polars frames. No I/O, no Spark."""
