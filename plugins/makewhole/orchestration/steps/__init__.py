"""Run the steps of a window, and those of an undo, as tasks of Airflow: load the window, do the step, log the result.

DAG files import these modules, so what the steps need is imported when they run.
"""
