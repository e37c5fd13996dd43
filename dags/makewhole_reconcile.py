"""Define one DAG of Airflow per pipeline file. That of a file with problems is red at its next run;
`makewhole_pipeline_files.py` shows them at once."""

from makewhole.config.pipeline_file import scheduled_pipelines
from makewhole.orchestration.dags import reconcile_dag
from makewhole.orchestration.deployment.settings import configured_folders

for pipeline in scheduled_pipelines(configured_folders()).values():
    globals()[f"makewhole_reconcile_{pipeline.name}"] = reconcile_dag(pipeline)
