"""Test the whole stack by its commands, brought up once: killed on the way, completed, damaged, repaired, ended."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from makewhole.stack.environment import environment

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(300)]

_PARTS = [
    "kafka-1",
    "postgres",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
]


class Stack:
    """`makewhole up`, `status` and `down` in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._variables = {name: value for name, value in os.environ.items() if name != "MAKEWHOLE_POSTGRES_DSN"}
        self._variables["MAKEWHOLE_HOME"] = str(home)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "makewhole.cli.stack", *arguments]
        return subprocess.Popen(
            command, env=self._variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.begin(*arguments)
        output, _ = process.communicate(timeout=200)
        return process.returncode, output

    def status(self) -> tuple[int, dict[str, Any]]:
        code, output = self.run("status", "--json")
        return code, json.loads(output)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"))
    yield stack
    stack.run("down")


def states(document: dict[str, Any]) -> dict[str, str]:
    return {name: part["state"] for name, part in document["health"].items()}


def test_a_killed_up_leaves_a_clear_state_that_the_next_up_completes(stack: Stack) -> None:
    killed = stack.begin("up")
    record = stack.home / "postgres" / "postgres.pid"
    deadline = time.monotonic() + 30
    while not (record.exists() and record.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    code, document = stack.status()
    assert code == 4
    assert states(document)["airflow-scheduler"] == "stopped"
    assert document["health"]["airflow-scheduler"]["remedy"] == "`makewhole up` starts it"

    code, output = stack.run("up")
    assert code == 0, output
    code, document = stack.status()
    assert states(document) == dict.fromkeys(_PARTS, "healthy")
    assert code == 0


def test_status_names_what_people_need(stack: Stack) -> None:
    _, document = stack.status()

    assert set(document) == {"kafka", "postgres", "airflow", "storage", "health"}
    assert set(document["kafka"]) == {"bootstrap"}
    assert document["postgres"]["dsn"].endswith("/local")
    assert document["airflow"]["user"] == "admin"
    assert document["storage"] == str(stack.home / "storage")


def test_its_airflow_lets_people_in_and_takes_nothing_of_ours_for_a_plugin(stack: Stack) -> None:
    _, document = stack.status()
    airflow = document["airflow"]
    with httpx.Client(base_url=airflow["url"], trust_env=False, timeout=20) as client:
        credentials = {"username": airflow["user"], "password": airflow["password"]}
        token = client.post("/auth/token", json=credentials).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"

        assert client.get("/api/v2/plugins/importErrors").json()["import_errors"] == []
        plugins = client.get("/api/v2/plugins").json()["plugins"]
        assert {plugin["name"] for plugin in plugins} == {"OpenLineageProviderPlugin", "makewhole"}
        assert all(plugin["source"].startswith("makewhole") or "openlineage" in plugin["source"] for plugin in plugins)


def test_everything_listens_on_loopback_only_but_airflows_log_servers(stack: Stack) -> None:
    """Airflow gives its log servers no choice of address; they answer only requests signed with the stack's secret."""
    _, document = stack.status()
    pids = {part["pid"] for part in document["health"].values()}
    listening = [c for c in psutil.net_connections("tcp") if c.pid in pids and c.status == psutil.CONN_LISTEN]
    addresses = {c.laddr.ip for c in listening if c.laddr}

    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}


def test_spark_submit_is_found_by_tasks(stack: Stack) -> None:
    variables = environment(stack.home)

    result = subprocess.run(["sh", "-c", "command -v spark-submit"], env=variables, capture_output=True, text=True)

    assert result.stdout.strip() == str(Path(sys.executable).parent / "spark-submit")


def test_a_dead_part_is_shown_and_a_second_up_starts_it_and_leaves_the_others_alone(stack: Stack) -> None:
    _, before = stack.status()
    os.kill(before["health"]["airflow-triggerer"]["pid"], signal.SIGKILL)

    code, wounded = stack.status()
    assert code == 4
    triggerer = wounded["health"]["airflow-triggerer"]
    assert triggerer["state"] == "dead"
    assert triggerer["remedy"] == f"see {triggerer['log']}; `makewhole up` starts it again"

    code, output = stack.run("up")
    assert code == 0, output
    _, after = stack.status()
    pids = {name: part["pid"] for name, part in after["health"].items()}
    assert pids.pop("airflow-triggerer") is not None
    assert pids == {name: before["health"][name]["pid"] for name in pids}


def test_down_ends_every_process_and_a_second_down_is_harmless(stack: Stack) -> None:
    assert stack.run("down")[0] == 0
    assert stack.run("down")[0] == 0

    code, document = stack.status()
    assert code == 4
    assert states(document) == dict.fromkeys(_PARTS, "stopped")
    assert _processes_in(stack.home) == []


def _processes_in(home: Path) -> list[str]:
    commands = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(home) and process.status() != psutil.STATUS_ZOMBIE:
                commands.append(" ".join(process.cmdline()))
        except (psutil.Error, FileNotFoundError):
            continue
    return commands
