"""Check what must be true when a phase is over, whatever happened on the way."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.crash.plan.lakes import STORES
from tests.crash.plan.produced import PRODUCED, REVERSED
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
from tests.crash.states.durable_state import Durable, Record
from tests.crash.states.lake_state import LakeState
from tests.crash.states.window_state import WindowDurable
from tests.crash.windows.window_invariants import assert_window

_ACTIONS = 10


def assert_invariants(phase: str, state: Durable) -> None:
    """Check for one plan, one approval, one committed copy per item, one receipt per chunk, the table as it shall
    be."""
    if isinstance(state, WindowDurable):
        assert_window(phase, state)
        return
    checks: dict[str, Callable[[Durable], None]] = {
        "freeze": _assert_frozen,
        "approve": _assert_approved,
        "supersede": _assert_superseded,
        "undo": _assert_undo_frozen,
        "restore": _assert_restored,
        **dict.fromkeys(("avro", "protobuf", "connect"), _assert_produced),
        **dict.fromkeys(("avro freeze", "protobuf freeze", "connect freeze"), partial(_assert_frozen, actions=7)),
        "datasets freeze": _assert_frozen,
        "datasets": _assert_datasets,
        "datasets undo": _assert_datasets_undo_frozen,
        "datasets restore": _assert_datasets_restored,
    }
    checks.get(phase, _assert_compensated)(state)


def assert_journal_knows_chunks(state: Durable) -> None:
    """Check that the journal knows of every chunk that there is, in the topic and in the table."""
    known = Counter(row["target"] for row in state.journal["chunk"])
    done = Counter({"flights": max(state.marker, 0), **state.receipts})
    assert known == +done, f"the journal knows of {dict(known)}, and there are {dict(done)}"


def _assert_frozen(state: Durable, actions: int = _ACTIONS) -> None:
    assert [plan["state"] for plan in state.journal["plan"]] == ["awaiting_approval"]
    assert len(state.journal["action"]) == actions
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


def _assert_produced(state: Durable) -> None:
    """Check that each record is there once, in its format, and that the journal has where."""
    assert _states(state) == ["done"]
    values = [json.loads(record.value) for record in state.records]
    assert sorted((value["id"], value["delay"]) for value in values) == sorted((*PRODUCED, *REVERSED))
    assert sorted(record.key for record in state.records) == sorted(key for key, _ in (*PRODUCED, *REVERSED))
    assert (state.marker, state.transaction, state.held_back) == (3, "idle", 0)
    assert sorted((row["chunk"], row["actions"]) for row in state.journal["chunk"]) == [(0, 3), (1, 3), (2, 1)]
    assert {row["outcome"] for row in state.journal["action"]} == {"done"}
    places = [place for row in state.journal["replayed_position"] for place in row["offsets"]]
    assert places == ["a record"] * 7
    assert len(state.files) == 1, f"files of the plan: {state.files}"


def _assert_datasets(state: Durable) -> None:
    """Check that each dataset holds what the plan says, once, and that all of it is known there and in the journal."""
    assert _states(state) == ["done"]
    refused = [number for number in range(_ACTIONS) if number % 5 == 4]
    assert _stores(state) == dict.fromkeys(STORES, AFTER)
    for store, receipts in _lakes(state).receipts.items():
        actions = [(receipt["chunk"], receipt["actions"], [*receipt["refused"].values()]) for receipt in receipts]
        assert sorted(actions) == [(0, 3, []), (1, 1, [REFUSED["K9"]])], store
    _assert_effects(state, _by_state(state, "done"), [0, 1, 2, 3, 3])
    outcomes = {(row["target"], row["key"]): (row["outcome"], row["outcome_reason"]) for row in state.journal["action"]}
    assert len(refused) == len(STORES)
    assert outcomes == {
        (store, key): ("refused", REFUSED[key]) if key in REFUSED else ("done", None)
        for store in STORES
        for key in ("K5", "K6", "K7", "K8", "K9")
    }
    assert len(state.files) == 1, f"files of the plan: {state.files}"


def _assert_datasets_undo_frozen(state: Durable) -> None:
    assert _states(state) == ["awaiting_approval", "done"]
    done, undo = _by_state(state, "done"), _by_state(state, "awaiting_approval")
    assert (undo["undoes"], undo["counts"]) == (done["id"], {"restore": len(STORES) * len(EFFECTS)})
    assert _stores(state) == dict.fromkeys(STORES, AFTER)


def _assert_datasets_restored(state: Durable) -> None:
    assert _states(state) == ["done", "done"]
    (undo,) = (plan for plan in state.journal["plan"] if plan["undoes"] is not None)
    assert _stores(state) == dict.fromkeys(STORES, RESTORED)
    chunks = [
        (row["target"], row["chunk"], row["actions"]) for row in state.journal["chunk"] if row["plan"] == undo["id"]
    ]
    assert sorted(chunks) == [(store, chunk, actions) for store in STORES for chunk, actions in ((0, 3), (1, 1))]
    outcomes = Counter((row["target"], row["outcome"]) for row in state.journal["action"] if row["plan"] == undo["id"])
    assert outcomes == {(store, outcome): count for store in STORES for outcome, count in (("done", 4), ("refused", 1))}


def _assert_effects(state: Durable, plan: dict[str, Any], seqs: list[int]) -> None:
    for store, effects in _lakes(state).effects.items():
        written = sorted(effect["seq"] for effect in effects if effect["plan"] == plan["id"])
        first = 5 * STORES.index(store)
        assert written == [first + seq for seq in seqs], f"effects at {store}: {written}"


def _lakes(state: Durable) -> LakeState:
    assert state.lakes is not None
    return state.lakes


def _stores(state: Durable) -> dict[str, list[tuple[str, int]]]:
    return dict(_lakes(state).rows)


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
