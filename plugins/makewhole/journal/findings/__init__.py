"""Read and write the findings of windows, batch by batch."""
