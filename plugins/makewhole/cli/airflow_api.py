"""Call Airflow's REST API, as far as the command line needs it."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from makewhole.model.errors import ConfigurationError, Problem, TransientError
from makewhole.stack.local import stack_state
from makewhole.stack.settings import home_folder

_POLL_SECONDS = 1.0
_DAG_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Access:
    """The address of an Airflow, and the user to call it as."""

    url: str
    user: str
    password: str

    def run_url(self, dag: str, run_id: str) -> str:
        """Return the address of a run's page."""
        return f"{self.url}/dags/{dag}/runs/{run_id}"

    def log_url(self, dag: str, run_id: str, task: str) -> str:
        """Return the address of the page that has the log of a task."""
        return f"{self.run_url(dag, run_id)}/tasks/{task}"


def access() -> Access:
    """Return the access in `MAKEWHOLE_AIRFLOW_URL`, `…_USER` and `…_PASSWORD`, or that of the local stack.

    Raises:
        ConfigurationError: neither is there.
    """
    names = ("MAKEWHOLE_AIRFLOW_URL", "MAKEWHOLE_AIRFLOW_USER", "MAKEWHOLE_AIRFLOW_PASSWORD")
    if names[0] in os.environ:
        url, user, password = (os.environ.get(name, "") for name in names)
        return Access(url=url.rstrip("/"), user=user, password=password)
    stack = stack_state(home_folder())
    if not stack.url:
        raise ConfigurationError(
            [
                Problem(
                    file="environment",
                    path=names[0],
                    found="is not set, and there is no local stack",
                    remedy="Start one with `makewhole up`, or set the URL, user and password of your Airflow",
                )
            ]
        )
    return Access(url=stack.url, user=stack.user or "", password=stack.password or "")


def log_url(dag: str | None, run_id: str | None, task: str | None) -> str | None:
    """Return the address of a task's log; None where the run is not known, or no Airflow is configured here."""
    if not (dag and run_id and task):
        return None
    try:
        return access().log_url(dag, run_id, task)
    except ConfigurationError:
        return None


class AirflowRefusedError(TransientError):
    """Airflow answered with an error. `status` is the status code of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class AirflowApi:
    """A logged-in client. Every method raises TransientError when Airflow refuses or does not answer."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def get(self, path: str, **query: str | int) -> Any:
        """Send GET to a path below `/api/v2`."""
        return read(self._client.get(path, params=query))

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send any other method, with a JSON body."""
        return read(self._client.request(method, path, json=body))

    def trigger(self, dag: str, form: Mapping[str, Any]) -> str:
        """Start a run with the form filled in; return its id."""
        return str(self.send("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"])

    def has_dag(self, dag: str) -> bool:
        """Return whether Airflow shows a DAG."""
        return self._client.get(f"/dags/{dag}").status_code == httpx.codes.OK

    def wait_for_dag(self, dag: str) -> None:
        """Wait until Airflow shows the DAG; when it does not, raise with the import errors in the message."""
        deadline = time.monotonic() + _DAG_SECONDS
        while self._client.get(f"/dags/{dag}").status_code != httpx.codes.OK:
            if time.monotonic() > deadline:
                errors = [error["stack_trace"] for error in self.get("/importErrors")["import_errors"]]
                raise TransientError(
                    f"Airflow does not show the DAG {dag}; look at `makewhole status`, and at its import errors: "
                    f"{errors or 'none'}"
                )
            time.sleep(_POLL_SECONDS)


@contextmanager
def airflow(where: Access) -> Iterator[AirflowApi]:
    """Log in and yield a client.

    Raises:
        TransientError: Airflow does not answer, or refuses.
    """
    try:
        login = httpx.post(
            f"{where.url}/auth/token", json={"username": where.user, "password": where.password}, timeout=30
        )
        headers = {"Authorization": f"Bearer {read(login)['access_token']}"}
        with httpx.Client(base_url=f"{where.url}/api/v2", headers=headers, timeout=60) as client:
            yield AirflowApi(client)
    except httpx.HTTPError as error:
        raise TransientError(f"Airflow at {where.url} does not answer; look at `makewhole status`") from error


def read(response: httpx.Response) -> Any:
    """Return the JSON of a response.

    Raises:
        AirflowRefusedError: it is an error.
    """
    if response.is_error:
        request = response.request
        raise AirflowRefusedError(
            f"Airflow answered {response.status_code} to {request.method} {request.url.path}: {response.text[:500]}",
            response.status_code,
        )
    return response.json() if response.content else None
