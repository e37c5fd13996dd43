"""Define Airflow's DAG for the person on call: a form with pipeline, interval, plan only and reason."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.orchestration.dags import oncall_dag

pipelines, _ = read_pipelines(pipeline_folders())
if pipelines:
    makewhole_oncall = oncall_dag(list(pipelines.values()))
