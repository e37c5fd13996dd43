"""Test the note of a run: what of the lines that tasks left it has, and whose notes it replaces."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from airflow.models.dagrun import DagRunNote
from airflow.models.xcom import XComModel
from sqlalchemy import Connection, create_engine, insert, select

from makewhole.orchestration.task_ids import CERTIFY, END_OF_WINDOW, PUBLISH, REASON_OF_FAILURE, SNAPSHOT
from makewhole.orchestration.ui import run_note
from makewhole.orchestration.ui.plugin import MakewholePlugin
from makewhole.orchestration.ui.run_note import left_by_tasks, note_of, write_note

pytestmark = pytest.mark.unit

END = "window 3 (revision 1) of orders: certified; certificate 7"
ENDED = (CERTIFY, END_OF_WINDOW, END)


@pytest.mark.parametrize(
    ("left", "note"),
    [
        ([], None),
        ([ENDED], END),
        ([("open_window", REASON_OF_FAILURE, "a"), (CERTIFY, REASON_OF_FAILURE, "no window was opened")], "a"),
        ([(SNAPSHOT, REASON_OF_FAILURE, "a"), ENDED, (CERTIFY, REASON_OF_FAILURE, "gaps")], END),
        ([ENDED, (PUBLISH, REASON_OF_FAILURE, "publish failed: away")], f"{END}; publish failed: away"),
        ([ENDED, (PUBLISH, REASON_OF_FAILURE, "x" * 2_000)], f"{END}; {'x' * (998 - len(END))}"),
    ],
)
def test_note_is_the_line_of_certify_and_what_broke_after_it_or_the_first_failure(
    left: list[tuple[str, str, str]], note: str | None
) -> None:
    assert note_of(left) == note


@pytest.fixture
def airflow() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        for model in (DagRunNote, XComModel):
            model.__table__.create(connection)
        yield connection


def test_lines_are_those_of_the_run_in_the_order_in_which_its_tasks_left_them(airflow: Connection) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        ("tonight", CERTIFY, END_OF_WINDOW, END),
        ("tonight", "open_window", "return_value", {"window": 3}),
        ("last night", SNAPSHOT, REASON_OF_FAILURE, "of another run"),
        ("tonight", SNAPSHOT, REASON_OF_FAILURE, "snapshot failed: away"),
    ]
    for number, (run, task, key, value) in enumerate(rows):
        names = {"dag_id": "nightly", "run_id": run, "task_id": task, "map_index": -1, "dag_run_id": len(run)}
        at = began - timedelta(minutes=number)
        airflow.execute(
            insert(XComModel).values(**names, key=key, value=XComModel.serialize_value(value), timestamp=at)
        )
    assert left_by_tasks(airflow, "nightly", "tonight") == [
        (SNAPSHOT, REASON_OF_FAILURE, "snapshot failed: away"),
        ENDED,
    ]


@pytest.mark.parametrize(
    ("there", "after"),
    [
        (None, END),
        ("", END),
        ("window 3 (revision 1) of orders: gaps; missing: 41 of 900", END),
        ("open_window failed: no topic", END),
        (
            "Ann looks at it; see window 3 (revision 1) of orders",
            "Ann looks at it; see window 3 (revision 1) of orders",
        ),
    ],
)
def test_note_replaces_an_older_one_of_its_kind_and_leaves_a_persons(
    there: str | None, after: str, airflow: Connection
) -> None:
    now = datetime.now(UTC)
    if there is not None:
        airflow.execute(
            insert(DagRunNote).values(dag_run_id=5, content=there, created_at=now, updated_at=now, user_id="ann")
        )
    write_note(airflow, 5, END)
    write_note(airflow, 5, None)
    assert airflow.execute(select(DagRunNote.dag_run_id, DagRunNote.content)).all() == [(5, after)]


def test_airflow_hears_of_the_end_of_runs() -> None:
    assert MakewholePlugin.listeners == [run_note]
    for hook in (run_note.on_dag_run_success, run_note.on_dag_run_failed):
        assert hasattr(hook, "airflow_impl")
