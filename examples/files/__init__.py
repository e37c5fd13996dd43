"""A consumer that writes Parquet files with their offsets, each record once, wherever it is killed."""
