"""Send how windows ended to where Airflow sends its own metrics."""
