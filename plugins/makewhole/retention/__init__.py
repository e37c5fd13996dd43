"""Remove what makewhole wrote, once it was kept as long as the pipeline's file says."""
