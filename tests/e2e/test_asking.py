"""Test that a machine without connections has Airflow ask, and prints what comes back."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from makewhole.stack.environment import environment
from tests.e2e.scenarios.unattended import Observed
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SECONDS = 300.0


def on_a_laptop(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the journal and Airflow are known, and no connection is."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "MAKEWHOLE_JOURNAL_DSN": environment(stage.home)["MAKEWHOLE_JOURNAL_DSN"],
        "MAKEWHOLE_PIPELINES": stage.variables["MAKEWHOLE_PIPELINES"],
        "MAKEWHOLE_AIRFLOW_URL": stage.status["airflow"]["url"],
        "MAKEWHOLE_AIRFLOW_TOKEN": stage.client().headers["Authorization"].split()[1],
    }
    program = str(Path(sys.executable).parent / "makewhole")
    return subprocess.run([program, *arguments], env=variables, capture_output=True, text=True, timeout=SECONDS)


def without_ages(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return {name: value for name, value in document.items() if name not in ("prepared", "open")}


def test_doctor_says_what_it_could_not_ask_and_how_airflow_can(stage: Stage, observed: Observed) -> None:
    alone = on_a_laptop(stage, "doctor", "observed")
    assert alone.returncode == 4, alone.stderr
    assert "not asked: orders: environment: AIRFLOW_CONN_LOCAL_KAFKA: is not set" in alone.stdout
    assert alone.stdout.splitlines()[-1].endswith("makewhole doctor --in-airflow observed")

    asked = on_a_laptop(stage, "doctor", "observed", "--in-airflow", "--json")
    here = stage.command("doctor", "observed", "--json")

    assert (asked.returncode, here.returncode) == (1, 1), asked.stderr
    assert without_ages(asked.stdout) == without_ages(here.stdout)
    assert without_ages(asked.stdout)["problems"] == []
    shown = on_a_laptop(stage, "doctor", "observed", "--in-airflow").stdout
    assert "observed claims outbox→orders" in shown


def test_everything_that_a_window_needs_is_asked_by_a_task(stage: Stage, observed: Observed) -> None:
    file = str(Path(stage.variables["MAKEWHOLE_PIPELINES"]) / "observed.yaml")

    done = on_a_laptop(stage, "check", "--live", "--in-airflow", "--json", file)

    document = json.loads(done.stdout)
    assert (done.returncode, document["problems"], document["not_asked"]) == (0, [], []), done.stderr
    for thing in ("journal", "storage", "signing key", "a task of Airflow about observed", "DAG of observed"):
        assert thing in document["asked"]
