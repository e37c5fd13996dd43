"""Define one DAG of Airflow per pipeline that goes on with windows which were left unfinished."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.orchestration.dags import continue_dag

pipelines, _ = read_pipelines(pipeline_folders())
for pipeline in pipelines.values():
    globals()[f"makewhole_continue_{pipeline.name}"] = continue_dag(pipeline)
