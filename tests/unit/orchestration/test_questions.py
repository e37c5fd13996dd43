"""Test what a person is asked, and what the task says whose run left no question."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from jinja2 import Environment, StrictUndefined

from makewhole.orchestration.answers import question_of
from makewhole.orchestration.operators import AcceptanceApproval, PlanApproval

pytestmark = pytest.mark.unit

QUESTION = {"subject": "demo window 1", "body": "3 missing", "plan": "p", "sha256": "s"}


def task_instance(question: dict[str, str] | None) -> Any:
    return SimpleNamespace(xcom_pull=lambda **_: question)


@pytest.mark.parametrize("operator", [PlanApproval, AcceptanceApproval])
@pytest.mark.parametrize("question", [QUESTION, None])
def test_the_task_shows_what_plan_left_and_nothing_where_it_left_nothing(
    operator: type[PlanApproval], question: dict[str, str] | None
) -> None:
    task, environment = operator.of_planned(), Environment(undefined=StrictUndefined)
    shown = [
        environment.from_string(text or "").render(ti=task_instance(question)) for text in (task.subject, task.body)
    ]

    assert shown == (["demo window 1", "3 missing"] if question else ["", ""])


def test_a_run_that_left_no_question_is_named() -> None:
    assert question_of({"ti": task_instance(QUESTION)}) == QUESTION
    with pytest.raises(AirflowFailException, match="left no question: it was marked as a success by hand"):
        question_of({"ti": task_instance(None)})
