"""Hold a table, its server, and what reads its log, to what is claimed of the table."""
