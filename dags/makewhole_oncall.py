"""Define Airflow's DAGs for the person on call: a form with pipeline, interval, plan only and reason, and one for each
pipeline whose file says who may run it."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.access import with_own_forms, with_shared_forms
from makewhole.orchestration.dags import oncall_dag, own_oncall_dag
from makewhole.orchestration.deployment.settings import configured_folders

pipelines, _ = read_pipelines(configured_folders())
shared = with_shared_forms(pipelines.values())
if shared or not pipelines:
    makewhole_oncall = oncall_dag(shared)
for pipeline in with_own_forms(pipelines.values()):
    globals()[f"makewhole_oncall_{pipeline.name}"] = own_oncall_dag(pipeline)
