"""The heart: pure functions over Arrow and polars frames. No I/O, no Spark."""
