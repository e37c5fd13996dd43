"""Test that findings are read from files however many there are, and pending keys all of them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.frames import FINDINGS
from makewhole.journal.results.handover_keys import Handover
from makewhole.lake.storage import Storage
from makewhole.model.verdict import REPAIRABLE, Cause, Finding, Verdict
from makewhole_spark.reconcile.stored_findings import first_findings, pending_keys

pytestmark = pytest.mark.unit

SINCE = datetime(2013, 1, 2, 5, 0, 0, 7, tzinfo=UTC)
VERDICTS = [Verdict.MISSING, Verdict.PENDING, Verdict.PENDING]
CAUSES = {Verdict.MISSING: Cause.NEVER_PRODUCED, Verdict.PENDING: Cause.IN_FLIGHT}


def finding(number: int) -> Finding:
    verdict = VERDICTS[number % 3]
    return Finding(
        hop="a→b",
        key=f"K{number}",
        key_hash=f"{number:032x}",
        verdict=verdict,
        cause=CAUSES[verdict],
        evidence={"source": [{"place": f"0:{number}"}], "waiting_since": SINCE.isoformat()},
    )


ALL = [finding(number) for number in range(9)]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path))


@pytest.fixture
def paths(storage: Storage) -> list[str]:
    """Two files: six findings and three."""
    rows = [{**vars(stored), "evidence": json.dumps(stored.evidence)} for stored in ALL]
    return [storage.write_parquet("p", pl.DataFrame(part, schema=FINDINGS)) for part in (rows[:6], rows[6:])]


def test_every_pending_key_is_handed_over_however_few_findings_the_journal_keeps(
    storage: Storage, paths: list[str]
) -> None:
    missing, pending = ALL[::3], [stored for stored in ALL if stored.verdict is Verdict.PENDING]
    assert list(first_findings(storage, paths, 2, ())) == missing[:2]
    assert list(first_findings(storage, paths, 4, ())) == [*missing, pending[0]]
    for most in (9, 100):
        assert list(first_findings(storage, paths, most, ())) == ALL
    assert list(pending_keys(storage, paths)) == [
        Handover(hop=stored.hop, key=stored.key, key_hash=stored.key_hash, since=SINCE)
        for stored in ALL
        if stored.verdict is Verdict.PENDING
    ]


def test_the_journal_keeps_first_what_is_asked_for_by_name_and_then_what_may_be_repaired(storage: Storage) -> None:
    of_each = [replace(finding(0), verdict=verdict, key=verdict.value) for verdict in Verdict if verdict.is_finding]
    rows = [{**vars(stored), "evidence": json.dumps(stored.evidence)} for stored in of_each]
    paths = [storage.write_parquet("p", pl.DataFrame(part, schema=FINDINGS)) for part in (rows[:5], rows[5:])]

    def kept(most: int, *answered: tuple[str, Verdict]) -> list[str]:
        return [stored.verdict.value for stored in first_findings(storage, paths, most, answered)]

    assert kept(8) == [
        "unexpected",
        "undecidable",
        "missing",
        "duplicate",
        "mismatched",
        "conflict",
        "vanished",
        "erased",
    ]
    assert kept(4, ("a→b", Verdict.MISMATCHED), ("a→b", Verdict.VANISHED), ("b→c", Verdict.MISSING)) == [
        "mismatched",
        "vanished",
        "unexpected",
        "undecidable",
    ]


@pytest.mark.parametrize("answered", [(), [("a→b", verdict) for verdict in REPAIRABLE]])
def test_no_verdict_is_left_out_of_the_order(storage: Storage, answered: Sequence[tuple[str, Verdict]]) -> None:
    """Two of each, so that not all are kept: as many as there are are kept but for one, of the last verdict."""
    of_each = [replace(finding(0), verdict=verdict) for verdict in Verdict if verdict.is_finding for _ in range(2)]
    rows = [{**vars(stored), "evidence": json.dumps(stored.evidence)} for stored in of_each]
    paths = [storage.write_parquet("p", pl.DataFrame(rows, schema=FINDINGS))]

    kept = Counter(stored.verdict for stored in first_findings(storage, paths, len(of_each) - 1, answered))

    assert kept == {**Counter(stored.verdict for stored in of_each), Verdict.PENDING: 1}


def test_a_window_without_findings_hands_nothing_over(storage: Storage) -> None:
    assert list(first_findings(storage, [], 4, ())) == []
    assert list(pending_keys(storage, [])) == []
