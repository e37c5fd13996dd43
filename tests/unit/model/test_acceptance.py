"""Test what of a finding is accepted: its fingerprint changes with the key, and with nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from makewhole.model.acceptance import Selection, finding_id, fingerprint
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit

RECORD = {"place": "0:4", "partition": 0, "offset": 4, "time": "2025-03-01T00:00:00+00:00"}
ROW = {"place": "(0,7)", "time": "2025-03-01T00:00:00+00:00"}
EVIDENCE: dict[str, Any] = {
    "in_source": True,
    "source_copies": 1,
    "target_copies": 1,
    "row_hash": "17",
    "values": {"amount": "4.50"},
    "columns": {"amount": {"source": "4.50", "target": "99.00"}},
    "source": [RECORD],
    "target": [ROW],
    "group_committed": {"0": 7},
}
FINDING = Finding(
    hop="orders→warehouse",
    key="O4",
    key_hash="04",
    verdict=Verdict.MISMATCHED,
    cause=Cause.VALUE_DIFFERS,
    evidence=EVIDENCE,
)


def with_evidence(**changed: Any) -> Finding:
    return replace(FINDING, evidence=EVIDENCE | changed)


@pytest.mark.parametrize(
    "same",
    [
        replace(FINDING, cause=Cause.STALE_VERSION),
        with_evidence(target=[ROW | {"place": "(3,1)", "time": "2026-01-01T00:00:00+00:00"}]),
        with_evidence(group_committed={"0": 19}, has_later=True),
    ],
    ids=["another cause", "a row that was moved by vacuum", "a group that went on"],
)
def test_what_may_change_while_the_key_does_not_is_no_part_of_it(same: Finding) -> None:
    assert fingerprint(same) == fingerprint(FINDING)


@pytest.mark.parametrize(
    "other",
    [
        replace(FINDING, verdict=Verdict.DUPLICATE),
        with_evidence(row_hash="18"),
        with_evidence(values={"amount": "5.00"}),
        with_evidence(columns={"amount": {"source": "4.50", "target": "98.00"}}),
        with_evidence(target_copies=2),
        with_evidence(source_copies=2),
        with_evidence(source=[RECORD, RECORD | {"offset": 9}]),
        with_evidence(source=[RECORD | {"aborted": True}]),
        with_evidence(in_source=False),
        with_evidence(target=[ROW | {"version": 2}]),
        with_evidence(conflict={"source": [{"place": "0:4", "values": {"amount": "1"}}], "target": []}),
    ],
    ids=lambda _: "",
)
def test_whatever_changes_of_the_key_changes_it(other: Finding) -> None:
    assert fingerprint(other) != fingerprint(FINDING)


def test_a_finding_has_a_name_of_its_own_on_each_hop() -> None:
    assert finding_id("a→b", "04") == finding_id("a→b", "04")
    assert len({finding_id("a→b", "04"), finding_id("b→c", "04"), finding_id("a→b", "05")}) == 3


def test_a_selection_takes_by_id_by_key_by_cause_or_all() -> None:
    identity = finding_id(FINDING.hop, FINDING.key_hash)
    taken = [
        Selection(names=(identity,)),
        Selection(names=("O5", "O4")),
        Selection(cause=Cause.VALUE_DIFFERS),
        Selection(),
    ]
    assert [selection.takes(FINDING) for selection in taken] == [True] * 4
    assert [selection.takes(FINDING) for selection in (Selection(names=("O5",)), Selection(cause=Cause.ABORTED))] == [
        False,
        False,
    ]
    assert [selection.is_all for selection in taken] == [False, False, False, True]
