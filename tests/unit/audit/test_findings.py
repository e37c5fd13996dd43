"""Test the findings of an audit: each fault is found, and a sound topic has none."""

from dataclasses import replace
from typing import Any

import pytest

from makewhole.audit.findings import findings
from makewhole.audit.report import AuditReport, EpochSpan, Level, TotalReport, UnreadOffsets
from makewhole.cli.audit.command import exit_code
from makewhole.cli.environment import Exit
from makewhole.model.window import Accounting
from tests.unit.audit import samples

pytestmark = pytest.mark.unit


def codes(report: AuditReport) -> dict[str, Level]:
    return {finding.code: finding.level for finding in findings(report)}


def exit_of(report: AuditReport) -> Exit:
    return exit_code(replace(report, findings=findings(report)))


def test_a_sound_topic_gets_the_note_that_no_gap_is_no_proof() -> None:
    (only,) = findings(samples.report())
    assert (only.code, only.level) == ("no_gap", Level.NOTE)
    assert only.unproven is not None
    assert only.unproven.startswith("That nothing was lost")
    assert exit_of(samples.report()) == Exit.CERTIFIED


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sequences": samples.sequences(gaps=1, missing=7)}, "sequence_gap"),
        ({"sequences": samples.sequences(repeats=1, repeated=4)}, "sequence_repeat"),
        ({"sequences": samples.sequences(missing_heads=1)}, "missing_head"),
        ({"sequences": samples.sequences(epoch_regressions=1)}, "epoch_regression"),
        ({"transactions": samples.transactions(open=(samples.running(is_hanging=True),))}, "hanging_transaction"),
        ({"partitions": (samples.partition(leader=-1),)}, "no_leader"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_should_not_be_there_is_found(changes: dict[str, Any], code: str) -> None:
    report = samples.report(**changes)
    assert codes(report)[code] is Level.FOUND
    assert findings(report)[0].code == code
    assert exit_of(report) == Exit.GAPS_REMAIN


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"partitions": (samples.partition(failure="the broker is away"),)}, "partition_not_read"),
        (
            {
                "offsets": Accounting(span=100, data=98, undecodable=2),
                "partitions": (samples.partition(undecodable=(UnreadOffsets(offset=3, end_offset=5, reason="bad"),)),),
            },
            "undecodable",
        ),
        ({"transactions": samples.transactions(open_refusal="no rights")}, "coordinators_not_asked"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_could_not_be_read_is_not_known(changes: dict[str, Any], code: str) -> None:
    report = samples.report(**changes)
    assert codes(report)[code] is Level.NOT_KNOWN
    assert exit_of(report) == Exit.NOT_KNOWN


def test_what_was_found_counts_more_than_what_could_not_be_read() -> None:
    failed = samples.report(
        partitions=(samples.partition(failure="away"),), sequences=samples.sequences(gaps=1, missing=1)
    )
    assert exit_of(failed) == Exit.GAPS_REMAIN


def test_good_things_to_know_are_notes_and_change_no_exit_code() -> None:
    total = TotalReport(batches=2, records=20, size_bytes=200)
    sound = samples.report()
    report = samples.report(
        offsets=Accounting(span=100, data=60, aborted=20, compacted=10, expired=10),
        partitions=(
            samples.partition(
                leader_epochs=(
                    EpochSpan(epoch=0, start_offset=0, end_offset=50),
                    EpochSpan(epoch=2, start_offset=50, end_offset=100),
                )
            ),
        ),
        sequences=samples.sequences(epoch_bumps=3),
        transactions=samples.transactions(
            aborted=replace(samples.ENDED, count=4, records=20), open=(samples.running(),)
        ),
        batches=replace(sound.batches, kinds={"plain": total}),
        times=replace(sound.times, late=total, latest_ms=90_000, oldest_ms=0, newest_ms=samples.NOW_MS + 3_600_000),
    )
    levels = codes(report)
    assert set(levels) == {
        "no_gap",
        "open_transaction",
        "no_numbering",
        "epoch_bumps",
        "leader_changes",
        "aborted",
        "expired",
        "compacted",
        "future_timestamps",
        "ancient_timestamps",
        "late_timestamps",
    }
    assert set(levels.values()) == {Level.NOTE}
    assert exit_of(report) == Exit.CERTIFIED


def test_a_hanging_transaction_says_how_to_end_it_and_what_an_authorizer_may_hide() -> None:
    hanging = samples.running(is_hanging=True, state=None, transactional_id=None)
    (finding, *_) = findings(samples.report(transactions=samples.transactions(open=(hanging,))))
    assert finding.what == "A transaction hangs in partition 0 from offset 90 on: no coordinator knows it"
    assert finding.unproven is not None
    assert finding.todo is not None
    assert "--topic orders --partition 0 --start-offset 90" in finding.todo


def test_replicas_out_of_sync_are_weak() -> None:
    assert codes(samples.report(partitions=(samples.partition(in_sync=(1, 2)),)))["under_replicated"] is Level.WEAK
