"""Read and write people's tables in PostgreSQL. No other package does."""
