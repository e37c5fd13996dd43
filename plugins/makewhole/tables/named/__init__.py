"""The tables of any kind by the names that a pipeline's file has for their columns."""
