"""Call Airflow's REST API, as far as the command line needs it."""

import json
import os
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from makewhole.model.errors import ConfigurationError, PermanentError, Problem, TransientError
from makewhole.stack.local import stack_state
from makewhole.stack.settings import home_folder

_POLL_SECONDS = 1.0
_DAG_SECONDS = 120.0
_USER, _PASSWORD = "MAKEWHOLE_AIRFLOW_USER", "MAKEWHOLE_AIRFLOW_PASSWORD"
URL_VARIABLE = "MAKEWHOLE_AIRFLOW_URL"
TOKEN_VARIABLE = "MAKEWHOLE_AIRFLOW_TOKEN"
_FILE_PREFIX = "file:"
_TOKEN = re.compile(r"[\w-]+\.([\w-]+)\.[\w-]+", re.ASCII)
_UNAUTHORIZED = 401
_NEW_TOKEN = (
    "Get a new one, from the page of your identity provider or as JSON from `POST {url}/auth/token` with `username` "
    f"and `password`, and put it where this one is: the file of --token-file, or {TOKEN_VARIABLE}"
)


@dataclass(frozen=True, kw_only=True)
class Access:
    """The address of an Airflow, and the user to call it as: by a token where there is one, by a password otherwise.
    With a token `user` is the name in it."""

    url: str
    user: str
    password: str = field(repr=False)
    token: str = field(default="", repr=False)

    def run_url(self, dag: str, run_id: str) -> str:
        """Return the address of a run's page."""
        return f"{self.url}/dags/{dag}/runs/{run_id}"

    def log_url(self, dag: str, run_id: str, task: str) -> str:
        """Return the address of the page that has the log of a task."""
        return f"{self.run_url(dag, run_id)}/tasks/{task}"


def access() -> Access:
    """Return the access in `MAKEWHOLE_AIRFLOW_URL` with `…_TOKEN`, or with `…_USER` and `…_PASSWORD`; or that of the
    local stack.

    Raises:
        ConfigurationError: none is there, or the token cannot be used; says how to get another one.
    """
    if URL_VARIABLE in os.environ:
        url, user, password = (os.environ.get(name, "") for name in (URL_VARIABLE, _USER, _PASSWORD))
        url, text = url.rstrip("/"), os.environ.get(TOKEN_VARIABLE, "").strip()
        if not text:
            return Access(url=url, user=user, password=password)
        token = _read_token(text)
        return Access(url=url, user=_user_of(token, url), password="", token=token)
    stack = stack_state(home_folder())
    if not stack.url:
        raise ConfigurationError(
            [
                Problem(
                    file="environment",
                    path=URL_VARIABLE,
                    found="is not set, and there is no local stack",
                    remedy="Start one with `makewhole up`, or set the URL of your Airflow, and a token, or user and "
                    "password",
                )
            ]
        )
    return Access(url=stack.url, user=stack.user or "", password=stack.password or "")


def _read_token(text: str) -> str:
    """Return the token that a variable holds, or the file that it names behind `file:`."""
    if not text.startswith(_FILE_PREFIX):
        return text
    path = Path(text.removeprefix(_FILE_PREFIX)).expanduser()
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unfit_token(
            f"names {path}, which cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}",
            "Write the token into that file, readable by you alone",
        ) from error


def _user_of(token: str, url: str) -> str:
    """Return the name in a token, which Airflow checks and this does not.

    Raises:
        ConfigurationError: it is no token, or has expired.
    """
    match = _TOKEN.fullmatch(token)
    try:
        claims = json.loads(urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4))) if match else None
    except ValueError:
        claims = None
    if not isinstance(claims, dict):
        raise _unfit_token("is no token of Airflow's, which has three parts with dots between them", _new_token(url))
    expires = claims.get("exp")
    if isinstance(expires, int | float) and expires <= time.time():
        moment = datetime.fromtimestamp(expires, UTC).isoformat(timespec="minutes")
        raise _unfit_token(f"has a token that expired at {moment}", _new_token(url))
    return str(claims.get("name") or claims.get("sub") or "")


def _new_token(url: str) -> str:
    return _NEW_TOKEN.format(url=url)


def _unfit_token(found: str, remedy: str) -> ConfigurationError:
    return ConfigurationError([Problem(file="environment", path=TOKEN_VARIABLE, found=found, remedy=remedy)])


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
        PermanentError: it does not take the token, or no longer.
    """
    try:
        headers = {"Authorization": f"Bearer {where.token or _log_in(where)}"}
        with httpx.Client(base_url=f"{where.url}/api/v2", headers=headers, timeout=60) as client:
            yield AirflowApi(client)
    except AirflowRefusedError as error:
        if where.token and error.status == _UNAUTHORIZED:
            raise PermanentError(
                f"Airflow at {where.url} does not take the token: it has expired, was revoked, or is another "
                f"Airflow's. {_new_token(where.url)}"
            ) from error
        raise
    except httpx.HTTPError as error:
        raise TransientError(f"Airflow at {where.url} does not answer; look at `makewhole status`") from error


def _log_in(where: Access) -> str:
    """Return a token for a user and a password."""
    login = httpx.post(f"{where.url}/auth/token", json={"username": where.user, "password": where.password}, timeout=30)
    return str(read(login)["access_token"])


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
