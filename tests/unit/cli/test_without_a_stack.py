"""Test that commands with nothing to talk to say what is missing and what to do, on stderr, with the exit code for
it."""

import json
from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest
from typer.testing import Result

from tests.world.unconfigured import ORDERS_FILE

pytestmark = pytest.mark.unit

NEED_A_SERVICE = [
    ("windows", "flights"),
    ("windows", "flights", "--json"),
    ("findings", "flights"),
    ("findings", "flights", "--json"),
    ("explain", "flights", "K1"),
    ("explain", "flights", "K1", "--json"),
    ("run", "flights"),
    ("run", "flights", "--json"),
    ("plan", "show", "flights-1-0123456789ab"),
    ("plan", "approve", "flights-1-0123456789ab"),
    ("plan", "reject", "flights-1-0123456789ab"),
    ("certificate", "verify", "flights"),
]


@pytest.mark.parametrize("arguments", NEED_A_SERVICE, ids=" ".join)
def test_no_service_is_a_wrong_configuration_with_its_remedy(
    invoke: Callable[..., Result], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"could not: environment: MAKEWHOLE_JOURNAL_DSN: is not set, and there is no local stack in {tmp_path}/home. "
        "Start one with `makewhole up`, or set it to the journal's PostgreSQL URI of your service, or "
        "AIRFLOW_CONN_MAKEWHOLE_JOURNAL to its connection\n"
    )


def test_a_check_of_everything_lists_a_service_that_is_not_configured_with_the_rest(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else each mistake costs a try of its own."""
    for name in ("MAKEWHOLE_SIGNING_KEY", "AIRFLOW_CONN_SHOP", "AIRFLOW_CONN_KAFKA_MAIN"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS_FILE)

    result = invoke("check", "--live", str(file), "--json")

    assert result.exit_code == 2
    paths = {f"{problem['file']} {problem['path']}" for problem in json.loads(result.stdout)["problems"]}
    for missing in ("KAFKA_MAIN", "SHOP", "AIRFLOW_URL", "JOURNAL_DSN", "STORAGE", "SIGNING_KEY"):
        assert any(missing in path for path in paths), (missing, paths)


def test_a_journal_whose_uri_cannot_be_used_is_named_without_it(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql+psycopg2://airflow:SECRET@db.example.org:5432/makewhole")
    text = "is no connection string of PostgreSQL's"
    remedy = (
        "Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with the special characters of each part "
        "percent-encoded"
    )

    result = invoke("windows", "flights")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"could not: environment: MAKEWHOLE_JOURNAL_DSN: {text}. {remedy}\n"

    for name in ("MAKEWHOLE_SIGNING_KEY", "AIRFLOW_CONN_SHOP", "AIRFLOW_CONN_KAFKA_MAIN"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS_FILE)
    result = invoke("check", "--live", str(file), "--json")
    assert (result.exit_code, "SECRET" in result.output) == (2, False)
    problems = json.loads(result.stdout)["problems"]
    listed = {f"{problem['file']} {problem['path']}" for problem in problems}
    assert [problem["found"] for problem in problems if problem["path"] == "MAKEWHOLE_JOURNAL_DSN"] == [text]
    for missing in ("KAFKA_MAIN", "SHOP", "AIRFLOW_URL", "STORAGE", "SIGNING_KEY"):
        assert any(missing in place for place in listed), (missing, listed)


def test_nothing_is_made_where_the_stack_would_be(invoke: Callable[..., Result], tmp_path: Path) -> None:
    for arguments in NEED_A_SERVICE:
        invoke(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("windows",), ("findings",), ("certificate", "verify")], ids=" ".join)
def test_a_journal_that_does_not_answer_could_not_run(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def refuse(dsn: str, **_: object) -> None:
        raise psycopg2.OperationalError(f"connection to {dsn} refused")

    monkeypatch.setattr(psycopg2, "connect", refuse)
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x:secret@nowhere/x")
    result = invoke(*command, "flights")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        "could not: the journal's PostgreSQL does not answer; check that it runs (`makewhole status`) and that "
        "MAKEWHOLE_JOURNAL_DSN names it\n"
    )


def test_run_without_an_airflow_says_how_to_name_one(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@nowhere/x")
    result = invoke("run", "flights")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "could not: environment: MAKEWHOLE_AIRFLOW_URL: is not set, and there is no local stack. "
        "Start one with `makewhole up`, or set the URL of your Airflow, and a token, or user and password\n"
    )


def test_run_names_the_pipelines_there_are(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@nowhere/x")
    result = invoke("run", "flihgts")
    assert result.exit_code == 2
    assert result.stderr == (
        "could not: pipeline folders: flihgts: no good pipeline file has this name. Known are: flights. "
        "Check the files with `makewhole check`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("findings", "flights", "--revision", "1"), "--revision goes with --window"),
        (("findings",), "Missing argument 'pipeline'"),
        (("explain", "flights"), "Missing argument 'key'"),
        (("run", "flights", "--from", "yesterday"), "'yesterday' is not a time; write it like 2026-01-31T02:00:00Z"),
        (("windows", "flights", "--window", "one"), "Invalid value for '--window': Input should be a valid integer"),
        (("plan", "shwo", "x"), "No such command 'shwo'"),
        (("reconcile",), "No such command 'reconcile'"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    invoke: Callable[..., Result], arguments: tuple[str, ...], message: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_damaged_stack_could_not_run_and_says_the_way_out(invoke: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.json").write_text("{")
    result = invoke("windows", "flights")
    assert result.exit_code == 4
    assert "is damaged; end the stack with `makewhole down`, remove that file, and `makewhole up`" in result.stderr
