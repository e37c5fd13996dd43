"""Run Kafka, PostgreSQL and Airflow on one machine, without containers: for the demo, for development, for the
tests."""
