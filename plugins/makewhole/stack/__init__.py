"""Run Kafka, PostgreSQL and Airflow on one machine, without containers: for demo, development and tests."""
