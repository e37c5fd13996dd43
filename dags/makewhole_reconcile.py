"""Define one DAG per good pipeline file. A file with problems shows as an import error that names them all."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.model.errors import ConfigurationError
from makewhole.orchestration.dags import reconcile_dag

pipelines, problems = read_pipelines(pipeline_folders())
for pipeline in pipelines.values():
    globals()[f"makewhole_reconcile_{pipeline.name}"] = reconcile_dag(pipeline)
if problems:
    raise ConfigurationError(problems)
