"""Refuse to start runs that Airflow would leave queued, as their DAG is paused."""

from makewhole.cli.airflow_api import Access, AirflowApi
from makewhole.model.errors import RefusedError


def require_released(api: AirflowApi, where: Access, dag: str, *, release: bool | None = None) -> None:
    """Return where a DAG may begin runs, which `release` has it do; None: the command has no option for that.

    Raises:
        RefusedError: it is paused. A run would wait without a word.
    """
    if not api.get(f"/dags/{dag}")["is_paused"]:
        return
    if not release:
        unpause = f"by `airflow dags unpause {dag}`"
        ways = f"or {unpause}" if release is None else f"{unpause}, or here with --release"
        raise RefusedError(
            f"{dag} is paused, and a run of it would wait until a person releases it: nothing was started. Release it "
            f"for good by the switch on {where.url}/dags/{dag}, {ways}"
        )
    api.send("PATCH", f"/dags/{dag}", {"is_paused": False})
