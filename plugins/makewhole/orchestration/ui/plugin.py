"""Give Airflow what an installed makewhole adds beside its provider: notes of runs, and pages.

Every process of Airflow loads this module.
"""

from airflow.plugins_manager import AirflowPlugin

from makewhole.orchestration.ui import run_note
from makewhole.orchestration.ui.pages import PREFIX, serve


class MakewholePlugin(AirflowPlugin):
    """The plugin that Airflow loads by the entry point `airflow.plugins`."""

    name = "makewhole"
    listeners = [run_note]  # noqa: RUF012 - as Airflow's base class declares it
    fastapi_apps = [{"app": serve, "url_prefix": PREFIX, "name": "makewhole"}]  # noqa: RUF012
