"""How a case is brought to where its phase begins: the life of its plan up to there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.crash.scenario import (
    BEFORE,
    OPENED_AT,
    TABLE_ALONE,
    Place,
    do_approve,
    do_compensate,
    do_freeze,
    do_undo,
    findings,
)
from tests.crash.world import Case, World

_TIMEOUT_SECONDS = 30.0
_COMMITTED = "after producer: commit_transaction"

NO_LEASE = {"lease_seconds": 0.0}
"""For runners whose plan is ended by somebody else, who need not wait until the lease expires."""


@contextmanager
def fresh(world: World, phase: str) -> Iterator[Case]:
    """Everything as it is before this phase begins; what still runs at the end is killed."""
    case = _begun(world, phase)
    try:
        yield case
    finally:
        for run in case.runs:
            run.kill()


def _begun(world: World, phase: str) -> Case:
    place = replace(world.next_place(), is_table_alone=phase in TABLE_ALONE)
    world.proxy.forget()
    _reset(world, place)
    if phase != "freeze":
        place = _frozen(world, place)
    if phase not in ("freeze", "approve"):
        do_approve(place)
    if phase == "first":
        place = replace(place, marker_topic=f"markers-of-{place.pipeline}")
    if phase in TABLE_ALONE:
        do_compensate(place)
    if phase == "restore":
        place = _undone(world, place)
    case = Case(phase=phase, place=place, starts=world.ends())
    if phase == "marker lost":
        _lose_marker(world, case)
    if phase == "supersede":
        world.start(case, phase="compensate", name=_COMMITTED, how="kill", through=NO_LEASE).wait("ended")
        revise(world, case)
    return case


def revise(world: World, case: Case) -> None:
    """The window is judged again, and finds what it found before; the plan of the earlier revision is in the way."""
    case.place = replace(case.place, revision=2)
    _put_window(world, case.place)


def _reset(world: World, place: Place) -> None:
    shutil.rmtree(place.storage, ignore_errors=True)
    world.sql("drop schema if exists makewhole cascade; truncate dw.departures")
    world.sql("insert into dw.departures (id, delay) values " + ", ".join(["%s"] * len(BEFORE)), BEFORE)
    _put_window(world, place)


def _put_window(world: World, place: Place) -> None:
    world.journal_sql(
        "insert into makewhole.window (pipeline, number, revision, opened_at, end_time, request, configuration) "
        "values (%s, 1, %s, %s, '2013-01-03', %s, '{}')",
        [place.pipeline, place.revision, OPENED_AT, f"test {place.revision}"],
    )
    rows = [
        (place.pipeline, place.revision, item.hop, item.key, item.key_hash, item.verdict.value)
        for item in findings(place)
    ]
    world.journal_sql(
        "insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) "
        "select pipeline, 1, revision, hop, key, key_hash, verdict, 'not_in_source', '{}' from (values "
        + ", ".join(["%s"] * len(rows))
        + ") as f (pipeline, revision, hop, key, key_hash, verdict)",
        rows,
    )


def _frozen(world: World, place: Place) -> Place:
    """With a plan; a row of it is changed right afterwards."""
    place = _of_plan(world, place, do_freeze(place))
    world.sql("update dw.departures set delay = 10 where id = 'K9' and ctid = '(0,8)'")
    return place


def _undone(world: World, place: Place) -> Place:
    """With a plan that undoes the one that is done, approved; a row of it is changed right afterwards."""
    place = _of_plan(world, place, do_undo(place))
    do_approve(place)
    world.sql("update dw.departures set delay = 66 where id = 'K6'")
    return place


def _of_plan(world: World, place: Place, plan: str) -> Place:
    ((sha256,),) = world.journal_sql("select sha256 from makewhole.plan where id = %s", [plan])
    return replace(place, plan=plan, sha256=sha256)


def _lose_marker(world: World, case: Case) -> None:
    """Killed when the first chunk was committed and the journal did not know; then the marker expires."""
    world.start(case, name=_COMMITTED, how="kill").wait("ended")
    group = case.place.identity
    world.admin.delete_consumer_groups([group])[group].result(_TIMEOUT_SECONDS)
