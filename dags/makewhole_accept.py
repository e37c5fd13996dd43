"""Define Airflow's DAG that accepts findings by a person's word."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.orchestration.accept_dag import accept_dag

pipelines, _ = read_pipelines(pipeline_folders())
makewhole_accept = accept_dag(list(pipelines.values()))
