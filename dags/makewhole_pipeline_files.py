"""Show the problems of pipeline files as an import error, and roles that are given no right. No DAG is defined here:
Airflow takes those of a file with an import error away."""

from makewhole.config.people.access import problems_of_roles
from makewhole.config.pipeline_file import read_pipelines
from makewhole.model.errors import ConfigurationError
from makewhole.orchestration.deployment.settings import configured_folders

pipelines, problems = read_pipelines(configured_folders())
problems += problems_of_roles(pipelines.values())
if problems:
    raise ConfigurationError(problems)
