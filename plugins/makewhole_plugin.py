"""What Airflow loads from this folder; everything else is in the package beside it (see `.airflowignore`)."""

from airflow.plugins_manager import AirflowPlugin


class MakewholePlugin(AirflowPlugin):
    """Makes makewhole known to Airflow."""

    name = "makewhole"
