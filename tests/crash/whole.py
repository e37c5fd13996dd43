"""What must be true when a phase is over, whatever happened on the way."""

from collections import Counter
from typing import Any

from tests.crash.durable import Durable, Record
from tests.crash.scenario import AFTER, BORN_MS, EFFECTS, PARTITIONS, QUARANTINED, REFUSED, WRITTEN

_ACTIONS = 10


def assert_whole(phase: str, state: Durable) -> None:
    """One plan; one approval; one committed copy per item, one receipt per chunk, the table as it shall be."""
    {"freeze": _frozen, "approve": _approved}.get(phase, _compensated)(state)


def _frozen(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["awaiting_approval"]
    assert len(state.journal["action"]) == _ACTIONS
    assert {action["outcome"] for action in state.journal["action"]} == {None}
    assert state.journal["approval"] == []
    assert len(state.files) == 1, f"files of the plan: {state.files}"
    assert {finding["outcome"] for finding in state.journal["finding"]} == {"open"}


def _approved(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["approved"]
    assert [(answer["decision"], answer["by"]) for answer in state.journal["approval"]] == [("approved", "oncall")]


def _compensated(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["done"]
    assert [(answer["decision"], answer["by"]) for answer in state.journal["approval"]] == [("approved", "oncall")]
    _assert_records(state)
    _assert_rows(state)
    _assert_journal(state)
    assert (state.transaction, state.held_back) == ("idle", 0), "a transaction was left open"
    assert len(state.files) == 1, f"files of the plan: {state.files}"


def _assert_records(state: Durable) -> None:
    assert Counter(record.key for record in state.records) == Counter(WRITTEN), "records that consumers see"
    assert sorted(_essence(record) for record in state.records) == [
        (key, number % PARTITIONS, BORN_MS + number, f"t{number}", str(number), str(number // 3))
        for number, key in enumerate(WRITTEN)
    ]
    assert state.marker == 2


def _essence(record: Record) -> tuple[Any, ...]:
    """Key, partition, time and header as they were; action and chunk as they were planned."""
    headers = dict(record.headers)
    assert len(headers) == len(record.headers)
    marks = headers["trace"], headers["makewhole-seq"], headers["makewhole-chunk"]
    return (record.key, record.partition, record.timestamp_ms, *marks)


def _assert_rows(state: Durable) -> None:
    assert sorted((row["id"], row["delay"]) for row in state.target["departures"]) == AFTER
    moved = [(row["row"]["id"], row["row"]["delay"]) for row in state.target["quarantine"]]
    assert sorted(moved) == QUARANTINED
    assert sorted((row["seq"], row["kind"]) for row in state.target["effect"]) == EFFECTS
    receipts = sorted((row["chunk"], row["actions"], row["refused"]) for row in state.target["receipt"])
    assert receipts == [(0, 3, {}), (1, 1, {"9": REFUSED["K9"]})]


def _assert_journal(state: Durable) -> None:
    chunks = sorted((row["target"], row["chunk"], row["actions"]) for row in state.journal["chunk"])
    assert chunks == [("flights", 0, 3), ("flights", 1, 1), ("warehouse", 0, 3), ("warehouse", 1, 1)]
    outcomes = {row["key"]: (row["outcome"], row["outcome_reason"]) for row in state.journal["action"]}
    assert outcomes == {
        f"K{number}": ("refused", REFUSED[f"K{number}"]) if f"K{number}" in REFUSED else ("done", None)
        for number in range(_ACTIONS)
    }
    (lease,) = state.journal["lease"]
    assert all(row["lease_epoch"] <= lease["epoch"] for row in state.target["receipt"])
