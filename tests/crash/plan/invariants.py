"""Check what must be true when a phase is over, whatever happened on the way."""

from collections import Counter
from typing import Any

from tests.crash.plan.scenario import (
    AFTER,
    BORN_MS,
    EFFECTS,
    PARTITIONS,
    QUARANTINED,
    REFUSED,
    RESTORED,
    RESTORING,
    WRITTEN,
)
from tests.crash.states.durable import Durable, Record

_ACTIONS = 10


def assert_invariants(phase: str, state: Durable) -> None:
    """Check for one plan, one approval, one committed copy per item, one receipt per chunk, the table as it shall
    be."""
    {
        "freeze": _assert_frozen,
        "approve": _assert_approved,
        "supersede": _assert_superseded,
        "undo": _assert_undo_frozen,
        "restore": _assert_restored,
    }.get(phase, _assert_compensated)(state)


def assert_journal_knows_chunks(state: Durable) -> None:
    """Check that the journal knows of every chunk that there is, in the topic and in the table."""
    known = Counter(row["target"] for row in state.journal["chunk"])
    done = Counter({"flights": max(state.marker, 0), "warehouse": len(state.target.get("receipt", ()))})
    assert known == +done, f"the journal knows of {dict(known)}, and there are {dict(done)}"


def _assert_frozen(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["awaiting_approval"]
    assert len(state.journal["action"]) == _ACTIONS
    assert {action["outcome"] for action in state.journal["action"]} == {None}
    assert state.journal["approval"] == []
    assert len(state.files) == 1, f"files of the plan: {state.files}"
    assert {finding["outcome"] for finding in state.journal["finding"]} == {"open"}


def _assert_approved(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["approved"]
    assert [(answer["decision"], answer["by"]) for answer in state.journal["approval"]] == [("approved", "oncall")]


def _assert_compensated(state: Durable) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["done"]
    assert [(answer["decision"], answer["by"]) for answer in state.journal["approval"]] == [("approved", "oncall")]
    _assert_records(state)
    _assert_rows(state)
    _assert_journal(state)
    assert (state.transaction, state.held_back) == ("idle", 0), "a transaction was left open"
    assert len(state.files) == 1, f"files of the plan: {state.files}"


def _assert_superseded(state: Durable) -> None:
    """Check that what the first chunk wrote is known, and is not planned again; the rest is, by one plan."""
    assert _states(state) == ["awaiting_approval", "rejected"]
    assert sorted(record.key for record in state.records) == ["K0", "K1", "K2"]
    assert (state.marker, state.transaction, state.held_back) == (1, "idle", 0)
    assert [(row["target"], row["chunk"], row["actions"]) for row in state.journal["chunk"]] == [("flights", 0, 3)]
    old, new = _by_state(state, "rejected"), _by_state(state, "awaiting_approval")
    assert (old["reason"], old["is_unknown"]) == (f"superseded by plan {new['id']}", False)
    assert old["settled_at"] is not None
    planned = sorted(action["key"] for action in state.journal["action"] if action["plan"] == new["id"])
    assert planned == [f"K{number}" for number in range(3, _ACTIONS)]
    refused = [
        (finding["key"], finding["outcome_reason"])
        for finding in state.journal["finding"]
        if (finding["revision"], finding["outcome"]) == (2, "refused")
    ]
    stale = f"stale: plan {old['id']} wrote this key after it was judged; run the window again"
    assert sorted(refused) == [(key, stale) for key in ("K0", "K1", "K2")]
    assert state.target["receipt"] == state.target["effect"] == state.target["quarantine"] == []
    assert len(state.files) == 2, f"files of the plans: {state.files}"


def _assert_undo_frozen(state: Durable) -> None:
    assert _states(state) == ["awaiting_approval", "done"]
    done, undo = _by_state(state, "done"), _by_state(state, "awaiting_approval")
    assert (undo["undoes"], undo["counts"]) == (done["id"], {"restore": len(EFFECTS)})
    assert _rows(state) == AFTER
    assert len(state.files) == 2, f"files of the plans: {state.files}"


def _assert_restored(state: Durable) -> None:
    """Check that every row that the plan wrote is as it was, once, but for the one that was changed since."""
    assert _states(state) == ["done", "done"]
    (undo,) = (plan for plan in state.journal["plan"] if plan["undoes"] is not None)
    assert _rows(state) == RESTORED
    assert sorted((row["row"]["id"], row["row"]["delay"]) for row in state.target["quarantine"]) == QUARANTINED
    assert all(row["restored_at"] is not None for row in state.target["quarantine"])
    effects = sorted((row["seq"], row["kind"]) for row in state.target["effect"] if row["plan"] == undo["id"])
    assert effects == RESTORING
    receipts = [(row["chunk"], row["actions"]) for row in state.target["receipt"] if row["plan"] == undo["id"]]
    assert sorted(receipts) == [(0, 3), (1, 1)]
    chunks = [(row["chunk"], row["actions"]) for row in state.journal["chunk"] if row["plan"] == undo["id"]]
    assert sorted(chunks) == [(0, 3), (1, 1)]
    outcomes = [(row["seq"], row["outcome"]) for row in state.journal["action"] if row["plan"] == undo["id"]]
    assert sorted(outcomes) == [(0, "done"), (1, "done"), (2, "done"), (3, "refused"), (4, "done")]


def _states(state: Durable) -> list[str]:
    return sorted(plan["state"] for plan in state.journal["plan"])


def _by_state(state: Durable, wanted: str) -> dict[str, Any]:
    (plan,) = (plan for plan in state.journal["plan"] if plan["state"] == wanted)
    return plan


def _rows(state: Durable) -> list[tuple[str, int]]:
    return sorted((row["id"], row["delay"]) for row in state.target["departures"])


def _assert_records(state: Durable) -> None:
    assert Counter(record.key for record in state.records) == Counter(WRITTEN), "records that consumers see"
    assert sorted(_essence(record) for record in state.records) == [
        (key, number % PARTITIONS, BORN_MS + number, f"t{number}", str(number), str(number // 3))
        for number, key in enumerate(WRITTEN)
    ]
    assert state.marker == 2


def _essence(record: Record) -> tuple[Any, ...]:
    """Return key, partition, time and header as they were; action and chunk as they were planned."""
    headers = dict(record.headers)
    assert len(headers) == len(record.headers)
    marks = headers["trace"], headers["makewhole-seq"], headers["makewhole-chunk"]
    return (record.key, record.partition, record.timestamp_ms, *marks)


def _assert_rows(state: Durable) -> None:
    assert _rows(state) == AFTER
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
