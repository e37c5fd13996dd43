"""Describe who may do what with a pipeline in Airflow."""
