"""Run the functions of makewhole.compute on Spark executors: the data plane."""
