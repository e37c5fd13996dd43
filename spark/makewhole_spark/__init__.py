"""The data plane: the kernels of makewhole.compute spread over Spark executors."""
