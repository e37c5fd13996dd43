"""Hold every system of a pipeline to the delivery that the pipeline claims."""
