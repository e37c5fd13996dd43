"""Read the hops of a pipeline file: ends, filters, remedies, redeliveries, and what of it cannot go together."""
