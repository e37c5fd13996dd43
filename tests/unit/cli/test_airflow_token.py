"""Test the login by token: whose it is, where it may stand, and what is said of one that cannot be used.

Airflow is played by a server that knows one token; the real one is asked in tests/e2e/test_accepted.py.
"""

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.airflow_api import Access, AirflowRefusedError, access, airflow
from makewhole.cli.main import app
from makewhole.model.errors import ConfigurationError, PermanentError, TransientError
from makewhole.stack.ports import free_ports

pytestmark = pytest.mark.unit

URL = "http://airflow.example"


def token(**claims: Any) -> str:
    """Return a token with these claims, whose signature is not checked here."""
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzUxMiJ9.{body}.c2ln-_"


ANNA = token(sub="anna", exp=time.time() + 3600)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "USER", "PASSWORD"):
        monkeypatch.delenv(f"MAKEWHOLE_AIRFLOW_{name}", raising=False)
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", f"{URL}/")


def problem(monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """Return what is said of a token."""
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", text)
    with pytest.raises(ConfigurationError) as refused:
        access()
    assert text.strip() not in str(refused.value) or text.startswith("file:")
    return str(refused.value)


def test_user_is_the_name_in_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_PASSWORD", "unused")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", f" {ANNA}\n")
    answer = access()
    assert answer == Access(url=URL, user="anna", password="", token=ANNA)
    assert ANNA not in repr(answer)
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_USER", "ben")
    assert access().user == "anna"  # no person acts in another's name
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", token(sub="7", name="ben"))
    assert access().user == "ben"


def test_without_a_token_user_and_password_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_USER", "carl")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_PASSWORD", "secret")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", " ")
    assert access() == Access(url=URL, user="carl", password="secret")
    assert "secret" not in repr(access())


def test_token_may_stand_in_a_file_which_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{ANNA}\n")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", f"file:{file}")
    assert access().token == ANNA
    file.write_text(token(sub="ben"))
    assert access().user == "ben"
    file.unlink()
    assert problem(monkeypatch, f"file:{file}") == (
        f"environment: MAKEWHOLE_AIRFLOW_TOKEN: names {file}, which cannot be read: No such file or directory. Write "
        "the token into that file, readable by you alone"
    )


def test_option_names_the_file_for_one_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_TOKEN", ANNA)  # so that it is as before after the test
    result = CliRunner().invoke(app, ["--token-file", str(tmp_path / "gone"), "plan", "--help"])
    assert result.exit_code == 0
    with pytest.raises(ConfigurationError, match=f"names {tmp_path / 'gone'}, which cannot be read"):
        access()


@pytest.mark.parametrize("user", [None, "anna"])
def test_expired_token_is_refused_with_where_to_get_a_new_one(
    monkeypatch: pytest.MonkeyPatch, user: str | None
) -> None:
    if user:
        monkeypatch.setenv("MAKEWHOLE_AIRFLOW_USER", user)
    assert problem(monkeypatch, token(sub="anna", exp=1_700_000_000)) == (
        "environment: MAKEWHOLE_AIRFLOW_TOKEN: has a token that expired at 2023-11-14T22:13+00:00. Get a new one, from "
        f"the page of your identity provider or as JSON from `POST {URL}/auth/token` with `username` and `password`, "
        "and put it where this one is: the file of --token-file, or MAKEWHOLE_AIRFLOW_TOKEN"
    )


@pytest.mark.parametrize(
    "text",
    ["secret", "a.b", "a.!!.c", "a.aGk.c", f"{ANNA}\nX-Other: 1", "a.bnVsbA.c", "ä.ö.ü"],
    ids=["a word", "two parts", "no base64", "no JSON", "a line more", "no object", "no ASCII"],
)
def test_text_that_is_no_token_is_not_sent_anywhere(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert "is no token of Airflow's, which has three parts with dots between them. Get a new one" in problem(
        monkeypatch, text
    )


@pytest.fixture
def server() -> Iterator[str]:
    """A server that takes Anna's token alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_anna = self.headers["Authorization"] == f"Bearer {ANNA}"
            self.send_response(200 if is_anna and self.path == "/api/v2/dags" else 403 if is_anna else 401)
            self.end_headers()
            self.wfile.write(b'{"dags": []}')

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_token_is_sent_and_one_that_is_not_taken_is_named_so(server: str) -> None:
    with airflow(Access(url=server, user="anna", password="", token=ANNA)) as api:
        assert api.get("/dags") == {"dags": []}
    other = token(sub="ben")
    with (
        pytest.raises(
            PermanentError, match=f"^Airflow at {server} does not take the token: it has expired, was revoked"
        ),
        airflow(Access(url=server, user="ben", password="", token=other)) as api,
    ):
        api.get("/dags")
    with (
        pytest.raises(AirflowRefusedError, match="Airflow answered 403"),
        airflow(Access(url=server, user="anna", password="", token=ANNA)) as api,
    ):
        api.get("/other")


@pytest.mark.parametrize("known", [ANNA, ""], ids=["token", "password"])
def test_an_airflow_that_is_away_is_named_with_what_shows_its_parts(known: str) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with (
        pytest.raises(TransientError, match=f"^Airflow at {url} does not answer; look whether its API server runs "),
        airflow(Access(url=url, user="anna", password="", token=known)) as api,
    ):
        api.get("/dags")


def test_an_address_with_a_password_is_refused_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", "https://dana:s3cret@airflow.example")
    with pytest.raises(ConfigurationError, match=r"has a user or a password in it.*MAKEWHOLE_AIRFLOW_USER") as raised:
        access()
    assert "s3cret" not in str(raised.value)
