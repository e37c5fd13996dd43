"""Test whether the ends of a hop agree after a repair changed the rows at one of them."""

from decimal import Decimal

import pytest

from makewhole.compensation.verification.agreement import EndCopy, broken_verdict
from makewhole.compute.versions import MOMENTS, UNREADABLE
from makewhole.model.hops import Semantics
from makewhole.model.verdict import Verdict

pytestmark = pytest.mark.unit

FIVE, SEVEN = EndCopy(row_hash=5, order=(1, 1)), EndCopy(row_hash=7, order=(1, 2))
TOMBSTONE = EndCopy(row_hash=None, is_tombstone=True, order=(1, 3))
OUTSIDE = EndCopy(row_hash=5, passes=False, order=(1, 4))
UNKNOWN = EndCopy(row_hash=None)


def numbered(row_hash: int, version: int | Decimal, partition: int = 0, order: tuple[int, ...] = ()) -> EndCopy:
    return EndCopy(row_hash=row_hash, version=Decimal(version), partition=partition, order=order)


EVENTS = [
    # source, target, at the source a repair changed rows, at the target
    ([FIVE], [FIVE], None, None),
    ([FIVE], [SEVEN], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([FIVE], [SEVEN, FIVE], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([FIVE, SEVEN], [SEVEN], None, None),
    ([], [SEVEN], Verdict.UNEXPECTED, None),
    ([OUTSIDE], [FIVE], Verdict.UNEXPECTED, None),
    ([FIVE], [], None, Verdict.MISSING),
    ([], [], None, None),
    ([FIVE], [UNKNOWN], None, None),
    ([FIVE, UNKNOWN], [SEVEN], None, None),
]


@pytest.mark.parametrize(("source", "target", "at_source", "at_target"), EVENTS)
def test_of_events_each_value_at_the_target_is_one_of_the_source(
    source: list[EndCopy], target: list[EndCopy], at_source: Verdict | None, at_target: Verdict | None
) -> None:
    verdicts = [broken_verdict(Semantics.EVENT, source, target, is_source_changed=at) for at in (True, False)]
    assert verdicts == [at_source, at_target]


VERSIONS = [
    ([FIVE, SEVEN], [SEVEN], None, None),
    ([FIVE, SEVEN], [FIVE], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([numbered(5, 9), numbered(7, 3, partition=1)], [numbered(5, 9)], None, None),
    ([numbered(5, 1)], [numbered(7, 2)], None, None),  # the target holds a later version, of another source
    ([numbered(5, 3)], [numbered(7, 2)], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([numbered(5, 2)], [numbered(7, 2)], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([numbered(5, 1)], [numbered(7, UNREADABLE)], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([numbered(5, 1)], [numbered(7, MOMENTS + 1)], Verdict.MISMATCHED, Verdict.MISMATCHED),
    ([SEVEN, TOMBSTONE], [FIVE], Verdict.UNEXPECTED, None),
    ([FIVE, OUTSIDE], [FIVE], Verdict.UNEXPECTED, None),
    ([FIVE], [SEVEN, TOMBSTONE], None, Verdict.MISSING),
    ([numbered(5, 1, partition=0), numbered(7, 1, partition=1)], [numbered(5, 1)], None, None),  # nothing orders them
    ([EndCopy(row_hash=5, passes=None)], [SEVEN], None, None),
    ([numbered(7, 4, order=(1, 1)), TOMBSTONE, numbered(5, 2, order=(1, 5))], [numbered(5, 2)], None, None),
]


@pytest.mark.parametrize(("source", "target", "at_source", "at_target"), VERSIONS)
def test_of_versions_the_target_has_the_latest_of_the_source_or_a_later_one(
    source: list[EndCopy], target: list[EndCopy], at_source: Verdict | None, at_target: Verdict | None
) -> None:
    verdicts = [broken_verdict(Semantics.UPSERT, source, target, is_source_changed=at) for at in (True, False)]
    assert verdicts == [at_source, at_target]
