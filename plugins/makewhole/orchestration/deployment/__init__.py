"""Take what this deployment of Airflow says: options, connections, and whether a pipeline is judged here."""
