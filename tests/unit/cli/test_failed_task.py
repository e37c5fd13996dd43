"""Test what is read at Airflow of a task that failed."""

import httpx
import pytest

from makewhole.cli.airflow_api import AirflowApi, AirflowRefusedError
from makewhole.cli.runs.failed_task import FailedTask, failed_task, first_failed_task
from makewhole.orchestration.task_ids import REASON_OF_FAILURE

pytestmark = pytest.mark.unit

TASK = "/dags/d/dagRuns/r/taskInstances/open_window"
LEFT = f"xcomEntries/{REASON_OF_FAILURE}"
REASON = {"value": "open_window failed: storage: is not set"}


def asked(answers: dict[str, httpx.Response]) -> FailedTask | None:
    transport = httpx.MockTransport(lambda request: answers[request.url.path.removeprefix(TASK).partition("/")[2]])
    with httpx.Client(base_url="http://airflow.example", transport=transport) as client:
        return failed_task(AirflowApi(client), "d", "r", "open_window")


def instance(tried: int) -> httpx.Response:
    return httpx.Response(200, json={"try_number": tried, "max_tries": 2})


@pytest.mark.parametrize(("tried", "is_permanent"), [(1, True), (2, True), (3, False)])
def test_a_task_that_has_tries_left_is_not_tried_again(tried: int, is_permanent: bool) -> None:
    path = {"": instance(tried), LEFT: httpx.Response(200, json=REASON)}
    assert asked(path) == FailedTask(reason="storage: is not set", is_permanent=is_permanent)


@pytest.mark.parametrize("status", [403, 404])
def test_a_task_that_has_left_no_reason_or_may_not_be_seen_is_none(status: int) -> None:
    refused = httpx.Response(status, text="no")
    assert asked({"": instance(1), LEFT: refused}) is None


def test_an_airflow_that_fails_is_no_task_without_a_reason() -> None:
    with pytest.raises(AirflowRefusedError):
        asked({"": httpx.Response(500, text="broken")})


def test_of_several_tasks_the_first_that_has_left_a_reason_says_why_a_run_failed() -> None:
    answers = {"plan": httpx.Response(404, text="no"), "restore": httpx.Response(200, json=REASON)}

    def answer(request: httpx.Request) -> httpx.Response:
        task, _, left = request.url.path.partition("/taskInstances/")[2].partition("/")
        return answers[task] if left else instance(1)

    with httpx.Client(base_url="http://airflow.example", transport=httpx.MockTransport(answer)) as client:
        failed = first_failed_task(AirflowApi(client), "d", "r", ("plan", "restore", "reopen"))
    assert failed is not None
    assert failed.reason == "open_window failed: storage: is not set"
