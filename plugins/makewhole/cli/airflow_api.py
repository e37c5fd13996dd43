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

from makewhole.model.errors import ConfigurationError, MakewholeError, PermanentError, Problem, TransientError
from makewhole.stack.local import stack_state
from makewhole.stack.settings import home_folder

_POLL_SECONDS = 1.0
_DAG_SECONDS = 120.0
_PAGE = 100  # the most that Airflow sends at once, unless it is configured otherwise
_USER, _PASSWORD = "MAKEWHOLE_AIRFLOW_USER", "MAKEWHOLE_AIRFLOW_PASSWORD"
URL_VARIABLE = "MAKEWHOLE_AIRFLOW_URL"
TOKEN_VARIABLE = "MAKEWHOLE_AIRFLOW_TOKEN"
_FILE_PREFIX = "file:"
_TOKEN = re.compile(r"[\w-]+\.([\w-]+)\.[\w-]+", re.ASCII)
_API = "/api/v2"
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
        ConfigurationError: none is there, or the token cannot be used; says how to get another one. Or the address has
            a user in it.
    """
    if URL_VARIABLE in os.environ:
        url, user, password = (os.environ.get(name, "") for name in (URL_VARIABLE, _USER, _PASSWORD))
        url, text = url.rstrip("/"), os.environ.get(TOKEN_VARIABLE, "").strip()
        if "@" in url:
            remedy = f"Write the address alone, and these into {_USER} and {_PASSWORD}"
            raise _wrong_url("has a user or a password in it, which messages would show", remedy)
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


class AirflowAwayError(TransientError):
    """Airflow did not answer, or went away before it had."""


class AirflowApi:
    """A logged-in client. `has_token`: by a token that a person gave, and that only they can replace.

    Every method raises TransientError when Airflow refuses or does not answer, and PermanentError when it does not take
    the token, or when what answers is no Airflow.
    """

    def __init__(self, client: httpx.Client, *, has_token: bool = False) -> None:
        self._client, self._has_token = client, has_token
        self._url = str(client.base_url).removesuffix("/").removesuffix(_API)

    def get(self, path: str, **query: str | int) -> Any:
        """Send GET to a path below `/api/v2`."""
        return self._answer("GET", path, params=query)

    def get_all(self, path: str, name: str, **query: str | int) -> list[dict[str, Any]]:
        """Send GET to a path whose answer is a list called `name`, until all of it is there: Airflow cuts it at
        `[api] maximum_page_limit`, whatever is asked for."""
        entries: list[dict[str, Any]] = []
        while True:
            answer = self.get(path, **query, limit=_PAGE, offset=len(entries))
            entries += answer[name]
            if not answer[name] or len(entries) >= answer["total_entries"]:
                return entries

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send any other method, with a JSON body."""
        return self._answer(method, path, json=body)

    def trigger(self, dag: str, form: Mapping[str, Any]) -> str:
        """Start a run with the form filled in; return its id. Where the answer is lost, the error says that there may
        be a run."""
        try:
            return str(self.send("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"])
        except (AirflowAwayError, AirflowRefusedError) as error:
            if not is_undecided(error):
                raise
            raise TransientError(
                f"Airflow at {self._url} went away while it was asked for a run of {dag}, and may have begun one: look "
                f"at {self._url}/dags/{dag} before you ask again"
            ) from error

    def has_dag(self, dag: str) -> bool:
        """Return whether Airflow shows a DAG."""
        try:
            self.get(f"/dags/{dag}")
        except AirflowRefusedError:
            return False
        return True

    def wait_for_dag(self, dag: str) -> None:
        """Wait until Airflow shows the DAG; when it does not, raise with the import errors in the message."""
        deadline = time.monotonic() + _DAG_SECONDS
        while not self.has_dag(dag):
            if time.monotonic() > deadline:
                errors = [error["stack_trace"] for error in self.get_all("/importErrors", "import_errors")]
                raise TransientError(
                    f"Airflow does not show the DAG {dag}; look at `makewhole status`, and at its import errors: "
                    f"{errors or 'none'}"
                )
            time.sleep(_POLL_SECONDS)

    def _answer(self, method: str, path: str, **more: Any) -> Any:
        try:
            with _translated_errors(self._url):
                return _read(self._client.request(method, path, **more))
        except AirflowRefusedError as error:
            if self._has_token and error.status == httpx.codes.UNAUTHORIZED:
                raise PermanentError(
                    f"Airflow at {self._url} does not take the token: it has expired, was revoked, or is another "
                    f"Airflow's. {_new_token(self._url)}"
                ) from error
            raise


def is_undecided(error: MakewholeError) -> bool:
    """Return whether what was asked for may have happened: the question was sent, and its answer is not known."""
    if isinstance(error, AirflowRefusedError):
        return error.status in (httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT)
    return not isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout)


@contextmanager
def airflow(where: Access) -> Iterator[AirflowApi]:
    """Log in and yield a client.

    Raises:
        TransientError: Airflow does not answer, or refuses.
        ConfigurationError: what answers is no Airflow, or the address is none.
    """
    with _translated_errors(where.url):
        headers = {"Authorization": f"Bearer {where.token or _log_in(where)}"}
        client = httpx.Client(base_url=f"{where.url}{_API}", headers=headers, timeout=60)
    with client:
        yield AirflowApi(client, has_token=bool(where.token))


def _log_in(where: Access) -> str:
    """Return a token for a user and a password."""
    login = httpx.post(f"{where.url}/auth/token", json={"username": where.user, "password": where.password}, timeout=30)
    return str(_read(login)["access_token"])


@contextmanager
def _translated_errors(url: str) -> Iterator[None]:
    """Raise the errors of the HTTP client as ours."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise _no_airflow("does not begin with http:// or https://, or names no host") from error
    except httpx.HTTPError as error:
        raise AirflowAwayError(
            f"Airflow at {url} does not answer; look whether its API server runs (of a local stack: `makewhole status`)"
        ) from error


def _read(response: httpx.Response) -> Any:
    """Return the JSON of a response.

    Raises:
        AirflowRefusedError: it is an error of Airflow's.
        ConfigurationError: it is none of Airflow's answers, such as a page or a way to another address.
    """
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    is_page = "html" in kind
    if response.is_server_error or (response.is_client_error and not is_page):
        request, text = response.request, "a page" if is_page else response.text[:500]
        raise AirflowRefusedError(
            f"Airflow answered {response.status_code} to {request.method} {request.url.path}: {text}",
            response.status_code,
        )
    if not response.is_success:
        raise _no_airflow(f"answers {response.status_code}" + (" with a page" if is_page else ""))
    if response.status_code == httpx.codes.NO_CONTENT:
        return None
    try:
        answer = response.json(object_hook=_Document)
    except ValueError as error:
        raise _no_airflow(f"answers {response.status_code} with {kind or 'nothing'}, and no JSON") from error
    if not isinstance(answer, _Document | None):
        raise _no_airflow(f"answers {response.status_code} with another JSON than an object")
    return answer


class _Document(dict[str, Any]):
    """An object of Airflow's JSON; one without what is looked for comes from another server."""

    def __missing__(self, name: str) -> Any:
        raise _no_airflow(f"answers without {name!r}")


def _no_airflow(why: str) -> ConfigurationError:
    remedy = "Set it to the address at which Airflow's own pages open, without /api/v2, and past any other login page"
    return _wrong_url(f"is not Airflow's API ({why})", remedy)


def _wrong_url(found: str, remedy: str) -> ConfigurationError:
    return ConfigurationError([Problem(file="environment", path=URL_VARIABLE, found=found, remedy=remedy)])
