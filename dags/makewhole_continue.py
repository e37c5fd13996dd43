"""Define one DAG of Airflow per pipeline that goes on with windows which were left unfinished."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.dags import continue_dag
from makewhole.orchestration.deployment.settings import configured_folders

pipelines, _ = read_pipelines(configured_folders())
for pipeline in pipelines.values():
    globals()[f"makewhole_continue_{pipeline.name}"] = continue_dag(pipeline)
