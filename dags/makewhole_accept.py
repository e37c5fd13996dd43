"""Define Airflow's DAGs that accept findings by a person's word: one for several pipelines, and one for each whose file
says who may run it."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.accept_dag import accept_dag, own_accept_dag
from makewhole.orchestration.access import with_own_forms, with_shared_forms
from makewhole.orchestration.deployment.settings import configured_folders

pipelines, _ = read_pipelines(configured_folders())
if shared := with_shared_forms(pipelines.values()):
    makewhole_accept = accept_dag(shared)
for pipeline in with_own_forms(pipelines.values()):
    globals()[f"makewhole_accept_{pipeline.name}"] = own_accept_dag(pipeline)
