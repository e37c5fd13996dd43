"""Note on a run of Airflow how its window ended: in one line, which the list of runs and the page of the run show.

A task cannot set the note of its run. It leaves the line in an XCom, and this listener writes it when the run ends,
in the process that ends it: the scheduler, or the API server where a person marks it.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from makewhole.orchestration.task_ids import CERTIFY, COMPARE_FAULTS, END_OF_WINDOW, REASON_OF_FAILURE

if TYPE_CHECKING:
    from airflow.models import DagRun

logger = logging.getLogger(__name__)
_OURS = re.compile(r"window \d+ \(revision \d+\) of |\w+ failed: ")
_LENGTH_MOST = 1000


@hookimpl
def on_dag_run_success(dag_run: "DagRun") -> None:
    """Note the result of a run that Airflow counts as good."""
    _note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: "DagRun") -> None:
    """Note the result of a run that failed."""
    _note(dag_run)


def note_of(left: Sequence[tuple[str, str, str]]) -> str | None:
    """Return the note of a run by what its tasks left, in the order in which they left it: task, key of the XCom, line.
    None: they left nothing.

    The line of `certify` says it all, but for what broke after it and for what a self-check says of its window; where
    it left none, the first failure is why.
    """
    ends = [at for at, (task, key, _) in enumerate(left) if (task, key) == (CERTIFY, END_OF_WINDOW)]
    if not ends:
        return next((line for _, key, line in left if key == REASON_OF_FAILURE), None)
    later = [line for task, key, line in left[ends[-1] :] if key == REASON_OF_FAILURE and task != CERTIFY]
    later += [line for task, key, line in left[ends[-1] :] if (task, key) == (COMPARE_FAULTS, END_OF_WINDOW)]
    return "; ".join([left[ends[-1]][2], *later])[:_LENGTH_MOST]


def _note(dag_run: "DagRun") -> None:
    """Write the note in the transaction that ends the run. Whatever goes wrong is logged alone, and undone by itself:
    the scheduler goes on with its transaction."""
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None or not _is_of_window(dag_run):
        return
    try:
        connection = session.connection()
        with connection.begin_nested():  # the session's own savepoint counts as a commit, which the scheduler forbids
            write_note(connection, dag_run.id, note_of(left_by_tasks(connection, dag_run.dag_id, dag_run.run_id)))
    except Exception:
        logger.exception("run %s of %s has no note", dag_run.run_id, dag_run.dag_id)


def _is_of_window(dag_run: "DagRun") -> bool:
    """Return whether a run can have left a line; where its DAG is not at hand, true."""
    dag = getattr(dag_run, "dag", None)
    return dag is None or any(tag.startswith("makewhole") for tag in dag.tags) or dag.has_task(CERTIFY)


def left_by_tasks(connection: Any, dag_id: str, run_id: str) -> list[tuple[str, str, str]]:
    """Return what the tasks of a run left for its note, oldest first: task, key of the XCom, line."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    wanted = (
        select(XComModel.task_id, XComModel.key, XComModel.value)
        .where(XComModel.dag_id == dag_id, XComModel.run_id == run_id)
        .where(XComModel.key.in_([END_OF_WINDOW, REASON_OF_FAILURE]))
        .order_by(XComModel.timestamp)
    )
    return [
        (row.task_id, row.key, str(XComModel.deserialize_value(row))) for row in connection.execute(wanted).fetchall()
    ]


def write_note(connection: Any, dag_run_id: int, note: str | None) -> None:
    """Write a note where there is none, or one that makewhole wrote; a person's stays. `dag_run_id`: Airflow's."""
    if note is None:
        return
    from airflow._shared.timezones import timezone
    from airflow.models.dagrun import DagRunNote
    from sqlalchemy import insert, select, update

    mine, now = DagRunNote.dag_run_id == dag_run_id, timezone.utcnow()
    there: Mapping[str, Any] | None = connection.execute(select(DagRunNote.content).where(mine)).mappings().first()
    if there is None:
        values = {"dag_run_id": dag_run_id, "content": note, "created_at": now, "updated_at": now}
        connection.execute(insert(DagRunNote).values(**values))
    elif not there["content"] or _OURS.match(there["content"]):
        connection.execute(update(DagRunNote).where(mine).values(content=note, updated_at=now))
