"""Define Airflow's DAG that goes on with windows which were left unfinished."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.orchestration.dags import continue_dag

pipelines, _ = read_pipelines(pipeline_folders())
if pipelines:
    makewhole_continue = continue_dag(list(pipelines.values()))
