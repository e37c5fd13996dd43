"""Bring a case to where its phase begins, through the life of its plan up to there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.crash.plan import lakes, produced
from tests.crash.plan.case_settings import MADE, CaseSettings, Writes
from tests.crash.plan.kept_stages import at_stage
from tests.crash.plan.scenario import (
    BEFORE,
    DONE,
    FROZEN,
    OPENED_AT,
    UNDONE,
    WRITES,
    do_approve,
    do_compensate,
    do_freeze,
    do_undo,
    findings,
)
from tests.crash.servers.world import Case, CrashWorld
from tests.crash.windows import window_scenario

_COMMITTED = "after producer: commit_transaction"

NO_LEASE = {"lease_seconds": 0.0}
"""For runners whose plan is ended by another process, which need not wait until the lease expires."""


@contextmanager
def case_at_phase_start(world: CrashWorld, phase: str) -> Iterator[Case]:
    """Make a case with everything as it is before this phase begins; kill what still runs at the end, and delete its
    groups: a runner asks every group of the cluster whether it reads the topic."""
    case = _at_start(world, phase)
    try:
        yield case
    finally:
        for run in case.runs:
            run.kill()
        plans = world.journal_sql("select id from makewhole.plan where pipeline = %s", [case.settings.pipeline])
        world.delete_groups([replace(case.settings, plan=plan).identity for (plan,) in plans])


def _at_start(world: CrashWorld, phase: str) -> Case:
    if phase in window_scenario.PHASES:
        world.proxy.forget()
        return Case(phase=phase, settings=world.settings_at(phase), starts={})
    world.proxy.forget()
    writes = WRITES.get(phase, Writes.TOPIC_AND_TABLE)
    if writes == Writes.DATASETS:
        settings = at_stage(world, phase, lambda: _reached(world, phase, writes))
    else:
        settings = _reached(world, phase, writes)
    case = Case(phase=phase, settings=settings, starts=world.ends())
    if phase == "marker lost":
        _lose_marker(world, case)
    if phase == "supersede":
        world.start(case, phase="compensate", name=_COMMITTED, how="kill", through=NO_LEASE).wait("ended")
        open_revision(world, case)
    return case


def _reached(world: CrashWorld, phase: str, writes: Writes) -> CaseSettings:
    settings = replace(world.next_settings(), writes=writes)
    _reset(world, settings)
    if phase not in FROZEN:
        settings = _with_plan(world, settings)
    if phase not in (*FROZEN, "approve"):
        do_approve(settings)
    if phase == "first":
        settings = replace(settings, marker_topic=f"markers-of-{settings.pipeline}")
    if phase in DONE:
        do_compensate(settings)
    if phase in UNDONE:
        settings = _with_undo(world, settings)
    return settings


def open_revision(world: CrashWorld, case: Case) -> None:
    """Judge the window again, which finds what it found before; the plan of the earlier revision is in the way."""
    case.settings = replace(case.settings, revision=2)
    _put_window(world, case.settings)


def _reset(world: CrashWorld, settings: CaseSettings) -> None:
    shutil.rmtree(settings.storage, ignore_errors=True)
    world.sql("drop schema if exists makewhole cascade; truncate dw.departures, dw.outbox")
    world.sql("insert into dw.departures (id, delay) values " + ", ".join(["%s"] * len(BEFORE)), BEFORE)
    if settings.writes == Writes.DATASETS:
        lakes.make(settings, BEFORE)
    if settings.writes in MADE:
        rows = produced.ledger_rows(settings)
        world.sql("insert into dw.outbox (id, delay, payload) values " + ", ".join(["%s"] * len(rows)), rows)
    _put_window(world, settings)


def _put_window(world: CrashWorld, settings: CaseSettings) -> None:
    world.journal_sql(
        "insert into makewhole.window (pipeline, number, revision, opened_at, end_time, request, configuration) "
        "values (%s, 1, %s, %s, '2013-01-03', %s, '{}')",
        [settings.pipeline, settings.revision, OPENED_AT, f"test {settings.revision}"],
    )
    rows = [
        (settings.pipeline, settings.revision, item.hop, item.key, item.key_hash, item.verdict.value)
        for item in findings(settings)
    ]
    world.journal_sql(
        "insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) "
        "select pipeline, 1, revision, hop, key, key_hash, verdict, 'not_in_source', '{}' from (values "
        + ", ".join(["%s"] * len(rows))
        + ") as f (pipeline, revision, hop, key, key_hash, verdict)",
        rows,
    )


def _with_plan(world: CrashWorld, settings: CaseSettings) -> CaseSettings:
    """Freeze a plan; change a row of it right afterwards."""
    settings = _with_plan_id(world, settings, do_freeze(settings))
    world.sql("update dw.departures set delay = 10 where id = 'K9' and ctid = '(0,8)'")
    if settings.writes == Writes.DATASETS:
        lakes.change(settings, "K9", [9, 10])
    return settings


def _with_undo(world: CrashWorld, settings: CaseSettings) -> CaseSettings:
    """Freeze and approve a plan that undoes the one that is done; change a row of it right afterwards."""
    settings = _with_plan_id(world, settings, do_undo(settings))
    do_approve(settings)
    world.sql("update dw.departures set delay = 66 where id = 'K6'")
    if settings.writes == Writes.DATASETS:
        lakes.change(settings, "K6", [66])
    return settings


def _with_plan_id(world: CrashWorld, settings: CaseSettings, plan: str) -> CaseSettings:
    ((sha256,),) = world.journal_sql("select sha256 from makewhole.plan where id = %s", [plan])
    return replace(settings, plan=plan, sha256=sha256)


def _lose_marker(world: CrashWorld, case: Case) -> None:
    """Kill a runner when the first chunk is committed and the journal does not know; then the marker expires."""
    world.start(case, name=_COMMITTED, how="kill").wait("ended")
    group = case.settings.identity
    assert world.delete_groups([group]) == [group]
