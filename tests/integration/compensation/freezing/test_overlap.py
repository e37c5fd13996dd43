"""Test several plans for the same keys: only the newest revision's runs, and nothing is written twice."""

import inspect
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa
import pytest

from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.compensation.execution.supersede import supersede
from makewhole.compensation.freezing import payload_file
from makewhole.compensation.freezing.freeze import FreezeRequest
from makewhole.compensation.plan_window import freeze_plan
from makewhole.journal import leases, plans
from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers, hop_results
from makewhole.kafka.replay import FencedError, ReplayWriter
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords
from makewhole.model.actions import Payload, PayloadExtra
from makewhole.model.errors import LeaseLostError, RefusedError, TransientError
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding, Verdict
from makewhole.model.window import Window
from makewhole.orchestration.steps import repairing
from makewhole.orchestration.task_ids import CERTIFY
from makewhole.postgres.connect import connect as connect_to_target
from makewhole.postgres.write.receipts import begin_chunk
from makewhole.sql import statements_of
from makewhole.tables.receipts import ChunkId
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 15


def test_a_plan_of_a_later_revision_takes_the_place_of_one_that_waits(world: PlanWorld) -> None:
    first = world.plan(_findings(world))
    second = world.plan(_findings(world))
    assert _state(world, first.id) == ("rejected", f"superseded by plan {second.id}")
    with pytest.raises(RefusedError, match=f"plan {first.id} is rejected: superseded by plan {second.id}"):
        world.run(first.id)
    world.run(second.id)
    _assert_each_once(world)


def test_two_revisions_that_are_planned_at_once_do_not_both_write(world: PlanWorld) -> None:
    """As two runs of one window at once make them: whichever is frozen first, the later one repairs."""
    findings = _findings(world)
    requests = [_request(world, world.open_revision(findings), findings) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        frozen = [pool.submit(freeze_plan, world.journal, request, world.sources) for request in requests]
    ends = [future.exception() for future in frozen]
    [(plan, revision)] = world.journal_sql("select id, revision from makewhole.plan where state <> 'rejected'")
    assert (revision, [type(end) for end in ends if end is not None]) in ((2, []), (2, [RefusedError])), ends
    world.run(plan)
    _assert_each_once(world)


def test_an_earlier_revision_freezes_no_plan_beside_the_one_of_a_later(world: PlanWorld) -> None:
    findings = _findings(world)
    first, second = (_request(world, world.open_revision(findings), findings) for _ in range(2))
    later = freeze_plan(world.journal, second, world.sources).plan
    assert later is not None
    with pytest.raises(RefusedError, match=f"is judged again as revision 2, whose plan {later.id} repairs it"):
        freeze_plan(world.journal, first, world.sources)
    assert world.journal_sql("select id from makewhole.plan") == [(later.id,)]
    world.run(later.id)
    _assert_each_once(world)


def _request(world: PlanWorld, window: Window, findings: list[Finding]) -> FreezeRequest:
    return FreezeRequest(pipeline=world.pipeline, window=window, findings=findings, window_keys=1_000_000)


def test_the_successor_is_named_though_whoever_ended_the_plan_before_it_was_killed(world: PlanWorld) -> None:
    first = world.plan(_findings(world))
    supersede(world.journal, first.id, world.targets, 2)
    second = world.plan(_findings(world))
    assert _state(world, first.id) == ("rejected", f"superseded by plan {second.id}")


def test_while_a_plan_of_an_earlier_revision_runs_the_next_one_waits(world: PlanWorld) -> None:
    first = world.plan(_findings(world))

    def freeze_meanwhile(progress: PlanProgress) -> None:
        if progress.chunks_done == 1:
            with pytest.raises(TransientError, match=f"plan {first.id} is being worked on by .*; wait for it to end"):
                world.freeze(_findings(world))

    run_plan(world.journal, first.id, world.targets, freeze_meanwhile)
    assert _state(world, first.id)[0] == "done"
    assert world.journal_sql("select count(*) from makewhole.plan") == [(1,)]
    _assert_each_once(world)


def test_a_plan_that_broke_off_is_asked_what_it_wrote_before_another_takes_its_place(world: PlanWorld) -> None:
    first = _broken_off(world)
    # The runner was killed between the commit of its second chunk and the journal.
    world.journal_sql("delete from makewhole.chunk where chunk = 1")
    frozen = world.freeze_plan(_findings(world))
    assert _state(world, first) == ("rejected", f"superseded by plan {frozen.plan.id}")
    stale = Refusal(RefusalCode.STALE, f"plan {first} wrote this key after it was judged; run the window again")
    written = world.journal_sql("select key_hash from makewhole.action where plan = %s and chunk = 1", first)
    assert {(refused.key_hash, refused.refusal) for refused in frozen.refusals} == {(row[0], stale) for row in written}
    assert world.journal_sql(
        "select count(*) from makewhole.finding where revision = 2 and outcome = 'refused' and outcome_reason = %s",
        str(stale),
    ) == [(5,)]
    assert world.journal_sql("select settled_at is not null, is_unknown from makewhole.plan where id = %s", first) == [
        (True, False)
    ]


def test_a_plan_that_broke_off_is_asked_what_it_wrote_where_the_window_is_whole_when_it_is_judged_again(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No plan takes its place. Before, it was never asked, and no key of the pipeline could be erased any more."""
    first = _broken_off(world)
    world.journal_sql("delete from makewhole.chunk where chunk = 1")
    window = world.open_revision([])
    with connect(world.journal) as journal:
        plans.supersede(journal, first, window.revision)  # as opening a revision does
        gate_answers.put_gate_report(
            journal, window, hop_results.RECONCILED, GateReport(answer=GateAnswer.PASS, planned=1, evaluated=1)
        )
    busy = f"plan {first} is rejected"
    assert _busy(world, window) == [busy]
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    monkeypatch.setattr(repairing, "load_context", lambda: world.context)

    assert _plan_task() == [CERTIFY]

    assert _busy(world, window) == []
    assert world.journal_sql("select chunk from makewhole.chunk where plan = %s order by chunk", first) == [(0,), (1,)]
    assert world.journal_sql("select settled_at is not null, is_unknown from makewhole.plan where id = %s", first) == [
        (True, False)
    ]
    assert _state(world, first) == ("rejected", "superseded by revision 2")


@pytest.mark.extended
def test_what_was_written_before_the_window_was_judged_again_is_judged_with_it(world: PlanWorld) -> None:
    first = _broken_off(world)
    done = {row[0] for row in world.journal_sql("select key from makewhole.action where outcome = 'done'")}
    assert len(done) == 10
    left = [finding for finding in _findings(world) if finding.key not in done]
    second = world.freeze_plan(left)
    assert second.refusals == ()
    world.run(second.plan.id)
    _assert_each_once(world)
    assert _state(world, first)[0] == "rejected"


def test_a_plan_of_which_all_was_written_turns_out_to_be_done(world: PlanWorld) -> None:
    first = world.plan(_findings(world)).id
    _run_until(world, first, 3)
    world.journal_sql("delete from makewhole.chunk where chunk = 2")
    second = world.freeze_plan(_findings(world))
    assert _state(world, first) == ("done", None)
    assert len(second.refusals) == 5
    assert second.plan.actions == 10


def test_a_runner_that_was_stopped_writes_nothing_once_another_plan_took_its_place(world: PlanWorld) -> None:
    findings = _findings(world)
    first = world.plan(findings)
    _run_until(world, first.id, 1)
    zombie = ReplayWriter(world.kafka, world.topic, f"replay-{first.id}-flights")
    assert zombie.open() == 1
    world.freeze(findings)
    record = payload_file.write_payloads("memory://zombie", [[(7, Payload(key=b"K7", extra=PayloadExtra(origin="z")))]])
    table = payload_file.verified_copy(*record).chunk(0, _column(7))
    with pytest.raises(FencedError, match="another runner came after this one"):
        zombie.write(1, ReplayRecords(table, LineageHeaders(plan=first.id, window="p/1", chunk=1)))
    zombie.close()
    assert len(world.replayed()) == 5


def test_a_runner_that_was_stopped_changes_no_row_once_another_plan_took_its_place(world: PlanWorld) -> None:
    world.sql("insert into dw.departures (id, delay) select 'K' || n / 2, 1 from generate_series(0, 19) as n")
    findings = [world.finding(number, Verdict.DUPLICATE) for number in range(10)]
    first = world.plan(findings)
    _run_until(world, first.id, 1)
    ((epoch,),) = world.journal_sql("select epoch from makewhole.lease where resource = %s", f"plan {first.id}")
    world.freeze(findings)
    zombie = ChunkId(plan=first.id, plan_sha256=first.sha256, target="warehouse", chunk=1, lease_epoch=epoch)
    with (
        pytest.raises(LeaseLostError, match=f"plan {first.id}: a newer runner has been at warehouse; this one stops"),
        connect_to_target(world.postgres) as session,
    ):
        begin_chunk(session, zombie)


def test_what_another_plan_wrote_after_the_window_was_opened_is_not_written_again(world: PlanWorld) -> None:
    first = world.plan(_findings(world))
    findings = _opened_again(world)
    world.run(first.id)
    frozen = world.freeze(findings, is_new=False)
    assert frozen.plan is None
    refusal = Refusal(RefusalCode.STALE, f"plan {first.id} wrote this key after it was judged; run the window again")
    assert Counter(refused.refusal for refused in frozen.refusals) == {refusal: RECORDS}
    _assert_each_once(world)


@pytest.mark.extended
def test_other_hops_and_other_keys_are_none_of_its_business(world: PlanWorld) -> None:
    first = world.plan(_findings(world)[:5])
    findings = _opened_again(world)
    world.run(first.id)
    world.sql(
        "insert into ops.outbox select 'K' || n, jsonb_build_object('id', 'K' || n), now() from generate_series(0, 4) n"
    )
    elsewhere = [world.finding(number, Verdict.MISSING, hop="outbox→flights") for number in range(5)]
    frozen = world.freeze_plan([*findings, *elsewhere], is_new=False)
    assert len(frozen.refusals) == 5
    assert dict(frozen.plan.counts) == {"produce": 5, "redeliver": 10}


@pytest.mark.extended
def test_where_nothing_shows_what_a_plan_wrote_its_keys_are_left_alone_until_the_window_is_judged_again(
    world: PlanWorld,
) -> None:
    first = _broken_off(world)
    findings = _opened_again(world)
    world.journal_sql("update makewhole.action set key_hash = key_hash, key = 'K999' where seq = 14")
    frozen = world.freeze(findings, is_new=False)
    assert frozen.plan is None
    refusal = Refusal(
        RefusalCode.STALE, f"plan {first} may have written this key after it was judged; run the window again"
    )
    assert Counter(refused.refusal for refused in frozen.refusals) == {refusal: RECORDS}
    later = world.freeze_plan(_findings(world))
    assert later.refusals == ()
    assert later.plan.actions == RECORDS


def test_a_plan_whose_runner_died_can_be_superseded_when_its_lease_is_over(world: PlanWorld) -> None:
    first = world.plan(_findings(world))
    with connect(world.journal) as session:
        leases.acquire(session, f"plan {first.id}", "another runner", 3600)
    with pytest.raises(TransientError, match="is being worked on by another runner until"):
        world.freeze(_findings(world))
    world.journal_sql("update makewhole.lease set expires_at = now()")
    second = world.plan(_findings(world))
    assert _state(world, first.id) == ("rejected", f"superseded by plan {second.id}")


def _busy(world: PlanWorld, window: Window) -> list[str]:
    """Return the plans that an erasure of a key would come between."""
    with connect(world.journal) as journal:
        rows = statements_of("erasure")(journal, "busy", pipeline=window.pipeline)
    return [row.what for row in rows if row.what.startswith("plan")]


def _plan_task() -> list[str]:
    """Do what the task `plan` does of the window of a run, without Airflow."""
    return cast(list[str], inspect.unwrap(repairing.plan)())


def _findings(world: PlanWorld) -> list[Finding]:
    if not world.originals:
        world.send(range(RECORDS))
    return [world.finding(number, Verdict.MISSING) for number in range(RECORDS)]


def _opened_again(world: PlanWorld) -> list[Finding]:
    """The next revision of the window, judged before anything else happens."""
    findings = _findings(world)
    world.open_revision(findings)
    return findings


def _broken_off(world: PlanWorld) -> str:
    """A plan that wrote two chunks of three and is running, though no runner works on it."""
    plan = world.plan(_findings(world)).id
    _run_until(world, plan, 2)
    return str(plan)


def _run_until(world: PlanWorld, plan: str, chunks: int) -> None:
    def interrupt(progress: PlanProgress) -> None:
        if progress.chunks_done == chunks:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        run_plan(world.journal, plan, world.targets, interrupt)
    assert _state(world, plan)[0] == "running"


def _state(world: PlanWorld, plan: str) -> tuple[str, str | None]:
    ((state, reason),) = world.journal_sql("select state, reason from makewhole.plan where id = %s", plan)
    return state, reason


def _assert_each_once(world: PlanWorld) -> None:
    keys = Counter(message.key_text for message in world.replayed())
    assert keys == {f"K{number}": 1 for number in range(RECORDS)}


def _column(seq: int) -> "pa.ChunkedArray[Any]":
    return pa.chunked_array([pa.array([seq], pa.int32())])
