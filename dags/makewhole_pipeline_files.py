"""Show the problems of pipeline files as an import error. No DAG is defined here: Airflow takes those of a file with an
import error away."""

from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
from makewhole.model.errors import ConfigurationError

_, problems = read_pipelines(pipeline_folders())
if problems:
    raise ConfigurationError(problems)
