"""Give Airflow the listener that notes the result of a run. Every process of Airflow loads this module."""

from airflow.plugins_manager import AirflowPlugin

from makewhole.orchestration.ui import run_note


class MakewholePlugin(AirflowPlugin):
    """What an installed makewhole adds to Airflow beside its provider."""

    name = "makewhole"
    listeners = [run_note]  # noqa: RUF012 - as Airflow's base class declares it
