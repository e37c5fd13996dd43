"""Test which open transactions count as hanging."""

from dataclasses import replace

import pytest

from makewhole.kafka.open_transactions import CoordinatorRights, DescribedTransaction, OpenTransaction, _with_state

pytestmark = pytest.mark.unit

NOW_MS = 10_000_000
OPEN = OpenTransaction(
    partition=3, first_offset=7, producer_id=5, producer_epoch=2, last_timestamp_ms=NOW_MS - 1000, coordinator_epoch=0
)
KNOWN = DescribedTransaction("id", "Ongoing", 60_000, NOW_MS - 2000, 5, 2, frozenset({3}))
ALL_SHOWN = CoordinatorRights(may_be_hidden=False, longest_timeout_ms=900_000)


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_what_its_coordinator_will_end_does_not_hang(state: str) -> None:
    judged = _with_state(OPEN, KNOWN._replace(state=state), ALL_SHOWN, NOW_MS)
    assert judged == replace(
        OPEN, transactional_id="id", state=state, started_at_ms=NOW_MS - 2000, timeout_ms=60_000, is_hanging=False
    )


@pytest.mark.parametrize(
    "known",
    [
        None,
        KNOWN._replace(state="CompleteCommit", started_at_ms=-1),
        KNOWN._replace(partitions=frozenset({4})),
        KNOWN._replace(producer_epoch=1),
        KNOWN._replace(started_at_ms=NOW_MS - 60_000 - 60_001),
    ],
    ids=["unknown", "ended", "another partition", "an older epoch", "overdue"],
)
def test_what_no_coordinator_will_end_hangs(known: DescribedTransaction | None) -> None:
    assert _with_state(OPEN, known, ALL_SHOWN, NOW_MS).is_hanging


def test_what_an_authorizer_may_hide_hangs_only_when_no_timeout_could_be_that_long() -> None:
    hidden = ALL_SHOWN._replace(may_be_hidden=True)
    assert not _with_state(OPEN, None, hidden, NOW_MS).is_hanging
    old = replace(OPEN, last_timestamp_ms=NOW_MS - 900_000 - 60_001)
    assert _with_state(old, None, hidden, NOW_MS).is_hanging
