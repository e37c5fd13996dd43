"""Read rows by COPY in PostgreSQL's binary format: columns of plain types as they are stored, the others as text."""
