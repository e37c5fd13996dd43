"""makewhole run: windows and keys, now, through Airflow."""
