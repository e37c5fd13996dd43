"""Test the commands that pause, watch, slow, resume and stop a plan."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from makewhole.cli.airflow_api import Access, AirflowApi
from makewhole.cli.main import app
from makewhole.cli.plan import control
from makewhole.model.errors import RefusedError
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 15
ME = "anna"


@pytest.fixture(autouse=True)
def service(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    monkeypatch.setenv("MAKEWHOLE_STORAGE", str(world.storage))
    monkeypatch.setattr(control, "airflow", _logged_in)
    acts_as(monkeypatch, ME)


def acts_as(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setattr(control, "access", lambda: Access(url="http://airflow", user=user, password=""))


@contextmanager
def _logged_in(person: Access) -> Iterator[AirflowApi]:
    """Play an Airflow that lets Anna alone clear tasks; the real one is asked in tests/e2e."""

    def answer(request: httpx.Request) -> httpx.Response:
        path = re.fullmatch(r"/api/v2/dags/makewhole_reconcile_[a-z0-9_.-]+/clearTaskInstances", request.url.path)
        assert (request.method, path is not None) == ("POST", True)
        assert json.loads(request.content)["dry_run"] is True
        return httpx.Response(200 if person.user == ME else 403, json={"task_instances": [], "total_entries": 0})

    with httpx.Client(base_url="http://airflow/api/v2", transport=httpx.MockTransport(answer)) as client:
        yield AirflowApi(client)


@pytest.mark.parametrize("command", [("pause",), ("resume",), ("rate", "5"), ("stop",)])
def test_who_may_not_clear_tasks_of_the_pipeline_may_not_steer_its_plans(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    plan = _plan(world)
    before = world.journal_sql("select state, control, reason, records_per_second from makewhole.plan")
    acts_as(monkeypatch, "viewer")
    name, *values = command
    result = CliRunner().invoke(app, ["plan", name, plan, *values])
    assert result.exit_code == 4
    refused = f"viewer may not steer plans of {world.pipeline.name}: Airflow does not let them clear tasks of the DAG"
    assert refused in " ".join(result.stderr.split())
    assert world.journal_sql("select state, control, reason, records_per_second from makewhole.plan") == before


def test_a_paused_plan_is_watched_and_goes_on_when_it_is_resumed(world: PlanWorld) -> None:
    plan = _plan(world)
    assert _say("pause", plan, "--reason", "lunch", "--json") == [
        {"id": plan, "state": "frozen", "reason": f"paused by {ME}: lunch"}
    ]
    runner = threading.Thread(target=world.run, args=(plan,), kwargs={"records_per_second": 2}, daemon=True)
    runner.start()
    (resumed,) = _say("resume", plan, "--json")
    assert (resumed["id"], resumed["reason"]) == (plan, f"resumed by {ME}")
    seen = _say("watch", plan, "--json")
    runner.join(30)
    assert (seen[-1]["state"], seen[-1]["actions_done"], seen[-1]["actions"]) == ("done", RECORDS, RECORDS)
    done = [line["actions_done"] for line in seen]
    assert done == sorted(done)
    assert seen[0]["actions_per_second"] is None, "nothing was measured at the first look"
    speeds = [line["actions_per_second"] for line in seen if line["actions_per_second"] is not None]
    assert speeds
    assert all(0.5 < speed <= 5 for speed in speeds)
    assert seen[-1]["seconds_left"] == 0
    result = CliRunner().invoke(app, ["plan", "rate", plan, "5"])
    assert result.exit_code == 2
    assert f"plan {plan} is done; there is nothing left of it to steer" in result.stderr


def test_a_stopped_plan_writes_nothing_more_and_says_who_stopped_it(world: PlanWorld) -> None:
    plan = _plan(world)
    assert _say("rate", plan, "7", "--json")[0]["reason"] == f"set to 7 records a second by {ME}"
    assert _say("stop", plan, "--reason", "wrong window", "--json") == [
        {"id": plan, "state": "rejected", "reason": f"stopped by {ME}: wrong window"}
    ]
    with pytest.raises(RefusedError, match=f"plan {plan} is rejected: stopped by {ME}: wrong window"):
        world.run(plan)
    assert world.replayed() == []
    watched = CliRunner().invoke(app, ["plan", "watch", plan])
    assert (watched.exit_code, watched.stdout) == (1, f"plan {plan}: rejected: stopped by {ME}: wrong window\n")


def _plan(world: PlanWorld) -> str:
    world.send(range(RECORDS))
    return str(world.plan([world.finding(number, Verdict.MISSING) for number in range(RECORDS)]).id)


def _say(*words: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["plan", *words])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]
