"""Define Airflow's DAG that takes a plan back."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.orchestration.undo_dag import undo_dag

pipelines, _ = read_pipelines(pipeline_folders())
makewhole_undo = undo_dag(list(pipelines.values()))
