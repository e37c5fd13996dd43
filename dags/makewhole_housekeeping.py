"""Define Airflow's DAG that keeps the key indexes small."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.deployment.settings import configured_folders
from makewhole.orchestration.housekeeping import housekeeping_dag

pipelines, _ = read_pipelines(configured_folders())
if pipelines:
    makewhole_housekeeping = housekeeping_dag(list(pipelines.values()))
