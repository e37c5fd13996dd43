"""Write a pipeline file from what a topic and two tables hold."""
