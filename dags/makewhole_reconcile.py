"""Define one DAG of Airflow per pipeline file. That of a file with problems is red at its next run;
`makewhole_pipeline_files.py` shows them at once."""

from makewhole.config.pipeline_file import pipeline_folders, scheduled_pipelines
from makewhole.orchestration.dags import reconcile_dag

for pipeline in scheduled_pipelines(pipeline_folders()).values():
    globals()[f"makewhole_reconcile_{pipeline.name}"] = reconcile_dag(pipeline)
