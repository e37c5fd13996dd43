"""The Airflow side: the steps of a window, the DAGs made of them, what they are given and how they report."""
