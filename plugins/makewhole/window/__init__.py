"""Open windows, record what exists at their sources, certify them and chain the certificates; no Airflow, no Spark."""
