"""Build the input of the kernels from plain rows, and read verdicts from their output."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, KEYS, REPLAYS, TOPIC_KEYS
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.compute.keys import with_hash

HOP = "source→target"
PLANS = ["demo-1-000000000001", "demo-2-000000000002", "demo-9-00000000dead"]
OLD, NEW, NEWER = 11, 12, 13
"""Row hashes."""

Row = dict[str, Any]
Kernel = Callable[[BucketInput], pl.DataFrame]


def hashed(rows: Sequence[Row], schema: dict[str, Any]) -> pl.DataFrame:
    """Return rows with a `key` as a frame in the schema, hashed, without the key unless the schema has it."""
    wanted = {"key": pl.String, **schema}
    frame = with_hash(pl.DataFrame(rows, schema={name: kind for name, kind in wanted.items() if name not in HASH}))
    return frame.select(*schema)


def copies(rows: Sequence[Row], is_topic: bool) -> pl.DataFrame:
    """Return copies, given at least by `key` and `offset`, in the schema of a topic or a table."""
    usual: Row = {"row_hash": OLD, "excluded_by": [], "is_aborted": False, "partition": 0}
    filled = [usual | {"place": f"{row.get('partition', 0)}:{row['offset']}"} | row for row in rows]
    return hashed(filled, TOPIC_KEYS if is_topic else KEYS)


def bucket(
    source: Sequence[Row],
    target: Sequence[Row],
    *,
    source_is_topic: bool = True,
    target_is_topic: bool = True,
    source_elsewhere: Sequence[Row] = (),
    target_elsewhere: Sequence[Row] = (),
    handed_over: Sequence[str] = (),
    unsettled: Sequence[str] = (),
    overdue: Sequence[str] = (),
    replays: Sequence[tuple[str, str]] = (),
    placed: Sequence[tuple[str, str, int, bool]] = (),
    has_cut: bool = False,
) -> BucketInput:
    """Return the input of a kernel. Of `replays` (plan, key) each is the next copy at the target that names the plan,
    `placed` are (plan, key, offset in partition 0, is it produced)."""
    return BucketInput(
        hop=HOP,
        has_cut=has_cut,
        source=copies(source, source_is_topic),
        target=copies(target, target_is_topic),
        source_elsewhere=hashed(source_elsewhere, ELSEWHERE),
        target_elsewhere=hashed(target_elsewhere, ELSEWHERE),
        handed_over=hashed([{"key": key} for key in handed_over], {"key": pl.String} | HASHES),
        unsettled=hashed([{"key": key} for key in unsettled], HASHES),
        overdue=hashed([{"key": key} for key in overdue], HASHES),
        replays=hashed(
            _written(target, replays)
            + [
                {"plan": plan, "key": key, "partition": 0, "offset": offset, "is_produced": is_produced}
                for plan, key, offset, is_produced in placed
            ],
            REPLAYS,
        ),
    )


def _written(target: Sequence[Row], replays: Sequence[tuple[str, str]]) -> list[Row]:
    committed = sorted((row for row in target if not row.get("is_aborted")), key=lambda row: row["offset"])
    rows: list[Row] = []
    for plan, key in dict.fromkeys(replays):
        own = [row for row in committed if (row.get("replay_plan"), row["key"]) == (plan, key)]
        rows += [
            {
                "plan": plan,
                "key": key,
                "partition": row.get("partition", 0),
                "offset": row["offset"],
                "is_produced": False,
            }
            for row in own[: replays.count((plan, key))]
        ]
    return rows


def one(key: str, offset: int, row_hash: int = OLD, **more: Any) -> Row:
    """Return one copy of a key in the slice."""
    return {"key": key, "offset": offset, "row_hash": row_hash, **more}


def verdict_by_key(kernel: Kernel, known: BucketInput) -> dict[str, str]:
    """Return the verdict of each judged key."""
    return dict(kernel(known).select("key", "verdict").rows())
