"""Run the steps of a window and of an undo in Airflow: DAGs, tasks, operators, connections, answers."""
