"""Judge some keys of a window alone, by what its snapshots, tables and logs have of them."""
