"""Test an answer on the command line: what is shown before it, to whom it goes, and the message when it is refused.

Airflow is played by a transport that knows its three paths; the real one is asked in tests/e2e/test_approval.py.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from typer.testing import Result

from makewhole.cli.airflow_api import Access, AirflowApi
from makewhole.cli.plan import answer
from makewhole.journal import plans
from makewhole.journal.plans import StoredPlan
from makewhole.model.plan import Plan, PlanState

pytestmark = pytest.mark.unit

Invoke = Callable[..., Result]
PLAN = "flights-7-0123456789ab"
BODY = (
    "| remedy | target |\n| --- | --- |\n| upsert | dw.late\\_flights \\[a](b) |\n\n"
    f"\x1b[2JPlan `{PLAN}`, SHA-256 `{'0' * 64}`. **The answer** is bound to this content."
)
RUN = "/api/v2/dags/makewhole_oncall/dagRuns/run 1"
PATH = f"{RUN}/taskInstances/approve/-1/hitlDetails"
QUESTIONS = "/api/v2/dags/~/dagRuns/~/hitlDetails"
XCOM = f"{RUN}/taskInstances/plan/xcomEntries/approval"


@dataclass
class Airflow:
    """A played Airflow: its question, its response to an answer, the requests that it got."""

    status: int = 200
    body: str = BODY
    plan: str | None = PLAN
    asked: list[str] = field(default_factory=list)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    waiting: list[str | None] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            self.asked.append(request.url.path)
            self.waiting += [request.url.params.get("state")] * (request.url.path == QUESTIONS)
            return self._questions() if request.url.path == QUESTIONS else self._xcom()
        self.sent.append((request.url.path, json.loads(request.content)))
        return httpx.Response(self.status, json={"detail": "said by Airflow"})

    def _questions(self) -> httpx.Response:
        task = {"dag_id": "makewhole_oncall", "dag_run_id": "run 1", "task_id": "approve"}
        other = {"subject": "Other", "body": self.body, "task_instance": {**task, "dag_id": "payroll"}}
        people = [{"id": "anna", "name": "anna"}, {"id": "ben", "name": "ben"}]
        mine = {"subject": "Repair 7", "body": self.body, "task_instance": task, "assigned_users": people}
        return httpx.Response(200, json={"hitl_details": [other, mine], "total_entries": 2})

    def _xcom(self) -> httpx.Response:
        if self.plan is None:
            return httpx.Response(404, json={"detail": "XCom entry with key: `approval` not found"})
        return httpx.Response(200, json={"key": "approval", "value": {"plan": self.plan, "subject": "Repair 7"}})


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Airflow:
    played = Airflow()

    @contextmanager
    def login(_: Access) -> Iterator[AirflowApi]:
        with httpx.Client(base_url="http://airflow/api/v2", transport=httpx.MockTransport(played)) as client:
            yield AirflowApi(client)

    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://nowhere/x")
    monkeypatch.setattr(answer, "connect", lambda: nullcontext(object()))
    monkeypatch.setattr(answer, "access", lambda: Access(url="http://airflow", user="carl", password=""))
    monkeypatch.setattr(answer, "airflow", login)
    waits(monkeypatch, PlanState.AWAITING_APPROVAL)
    return played


@pytest.mark.parametrize(
    ("command", "option", "said"), [("approve", "Approve", "approved"), ("reject", "Reject", "rejected")]
)
def test_the_summary_is_shown_and_the_answer_goes_to_the_task_that_asks(
    invoke: Invoke, airflow: Airflow, command: str, option: str, said: str
) -> None:
    result = invoke("plan", command, PLAN)
    assert result.exit_code == 0, result.output
    shown = [line.strip() for line in result.stdout.splitlines()]
    assert [line for line in shown if line.strip("─ ")] == [
        "Repair 7",
        "remedy  target",
        "upsert  dw.late_flights [a](b)",
        f"\\x1b[2JPlan {PLAN}, SHA-256 {'0' * 64}. The answer is bound to this content.",
        f"{said}: plan {PLAN}",
    ]
    assert airflow.asked == [QUESTIONS, XCOM]
    assert airflow.waiting == ["awaiting_input"], "an answer to a task that was marked or cleared is lost"
    assert airflow.sent == [(PATH, {"chosen_options": [option], "params_input": {}})]


def test_nothing_of_the_summary_is_cut_off_where_the_terminal_is_narrow(
    invoke: Invoke, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    airflow.body += (
        f"\n\n| remedy | target |\n| --- | --- |\n| upsert | {'warehouse' * 9} |\n\n- columns: {'a, ' * 30}end"
    )
    shown = invoke("plan", "approve", PLAN).stdout
    assert "…" not in shown
    assert "".join(line.strip().removeprefix("upsert").strip() for line in shown.splitlines()).count("warehouse") == 9
    assert "end\n" in "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


def test_for_programs_the_summary_and_the_answer_are_one_object(invoke: Invoke, airflow: Airflow) -> None:
    result = invoke("plan", "approve", PLAN, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "id": PLAN,
        "answer": "approved",
        "by": "carl",
        "subject": "Repair 7",
        "body": BODY,
    }
    assert result.stderr.startswith("Repair 7\n")
    assert airflow.sent == [(PATH, {"chosen_options": ["Approve"], "params_input": {}})]


def test_a_refusal_names_who_may_answer(invoke: Invoke, airflow: Airflow) -> None:
    airflow.status = 403
    result = invoke("plan", "approve", PLAN)
    assert result.exit_code == 4
    assert result.stderr == (
        f"could not: carl may not answer for plan {PLAN}; anna, ben may. Airflow answered 403 to PATCH "
        f'{PATH}: {{"detail":"said by Airflow"}}\n'
    )


def test_an_answer_of_which_nothing_is_known_may_have_been_taken(invoke: Invoke, airflow: Airflow) -> None:
    airflow.status = 504
    result = invoke("plan", "approve", PLAN, "--yes")
    assert result.exit_code == 4
    assert result.stderr == (
        f"could not: Airflow went away while it was given the answer for plan {PLAN}, and may have taken it: "
        "http://airflow/dags/makewhole_oncall/runs/run 1/required_actions shows whether it still asks. If it does, "
        "answer again\n"
    )


def test_a_second_answer_is_refused_in_airflows_words(invoke: Invoke, airflow: Airflow) -> None:
    airflow.status = 409
    result = invoke("plan", "approve", PLAN)
    assert result.exit_code == 4
    assert "Airflow answered 409 to PATCH" in result.stderr


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (PlanState.APPROVED, "is approved: approved by anna and waits for no answer"),
        (PlanState.REJECTED, "is rejected: approved by anna and waits for no answer"),
    ],
)
def test_a_plan_that_has_its_answer_takes_no_second_one(
    invoke: Invoke, airflow: Airflow, monkeypatch: pytest.MonkeyPatch, state: PlanState, message: str
) -> None:
    waits(monkeypatch, state)
    result = invoke("plan", "approve", PLAN)
    assert (result.exit_code, result.stderr) == (2, f"could not: plan {PLAN} {message}\n")
    assert airflow.sent == []


@pytest.mark.parametrize("asked_about", ["flights-8-0123456789ab", None])
def test_a_plan_that_no_run_asks_about_is_not_answered(
    invoke: Invoke, airflow: Airflow, asked_about: str | None
) -> None:
    airflow.plan = asked_about
    result = invoke("plan", "approve", PLAN)
    assert result.exit_code == 2
    assert result.stderr == (f"could not: no run of Airflow waits for an answer to plan {PLAN}; run the window again\n")
    assert airflow.sent == []


def waits(monkeypatch: pytest.MonkeyPatch, state: PlanState) -> None:
    plan = Plan(
        id=PLAN,
        pipeline="flights",
        window=7,
        revision=1,
        sha256="0" * 64,
        payload_uri=None,
        counts={},
        state=state,
        reason=None if state is PlanState.AWAITING_APPROVAL else "approved by anna",
    )
    monkeypatch.setattr(plans, "find_plan", lambda *_: StoredPlan(plan=plan, payload_sha256=None))
