"""Define Airflow's DAGs that ask the systems of a pipeline and write nothing: one for several pipelines, and one for
each whose file says who may run it."""

from makewhole.config.pipeline_file import read_pipelines
from makewhole.orchestration.access import with_own_forms, with_shared_forms
from makewhole.orchestration.ask_dag import ask_dag, own_ask_dag
from makewhole.orchestration.deployment.settings import configured_folders

pipelines, _ = read_pipelines(configured_folders())
if shared := with_shared_forms(pipelines.values()):
    makewhole_ask = ask_dag(shared)
for pipeline in with_own_forms(pipelines.values()):
    globals()[f"makewhole_ask_{pipeline.name}"] = own_ask_dag(pipeline)
