"""Datasets: rows of Arrow, whatever keeps them, as every step takes the rows of tables."""
