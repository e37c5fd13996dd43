"""Define one DAG of Airflow per pipeline that takes its plans back. Each is paused until a person releases it."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.deployment.settings import configured_folders
from makewhole.orchestration.undo_dag import undo_dag

pipelines, _ = read_pipelines(configured_folders())
for pipeline in pipelines.values():
    globals()[f"makewhole_undo_{pipeline.name}"] = undo_dag(pipeline)
