"""Describe who may do what with a pipeline in Airflow, and what is sent to people."""
