"""Read where the columns of points stand: in records, in tables, in arrays, and in which units."""
