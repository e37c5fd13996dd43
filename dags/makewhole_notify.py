"""Define Airflow's DAG that sends what waits for a person, where a pipeline says to whom."""

from makewhole.config.pipeline_file import read_pipelines, scheduled_pipelines
from makewhole.orchestration.deployment.settings import configured_folders
from makewhole.orchestration.notices.notify_dag import notify_dag

_, problems = read_pipelines(configured_folders())
pipelines = scheduled_pipelines(configured_folders())
with_channels = [pipeline for pipeline in pipelines.values() if pipeline.notify is not None]
if with_channels or problems:
    makewhole_notify = notify_dag(with_channels)
