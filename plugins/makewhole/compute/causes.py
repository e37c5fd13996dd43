"""Why: the mechanism behind each verdict, as far as the log and the consumer group carry it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compute.frames import FINDINGS, HASH, HASHES, empty
from makewhole.model.pipeline import PointKind
from makewhole.model.verdict import Cause, Verdict

_IDENTITY = ("partition", "offset", "leader_epoch", "producer_id", "producer_epoch", "sequence", "replay_plan")
_PLACES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class HopContext:
    """What the causes of one bucket are read from. `committed` is the consumer group's next offset per partition."""

    hop: str
    source_kind: PointKind
    target_kind: PointKind
    source: pl.DataFrame
    target: pl.DataFrame
    committed: Mapping[int, int] | None = None
    unconsumed: pl.DataFrame = field(default_factory=lambda: empty(HASHES))


def explain(judged: pl.DataFrame, context: HopContext) -> pl.DataFrame:
    """Findings (`FINDINGS`) for every judged row that is not matched, sorted by key hash."""
    wanted = judged.filter(pl.col("verdict") != Verdict.MATCHED.value)
    if wanted.is_empty():
        return empty(FINDINGS)
    copies = _Copies(wanted, context)
    rows = []
    for row in wanted.iter_rows(named=True):
        evidence = _evidence(row, copies)
        cause = _cause(row, copies, context)
        if context.committed is not None and context.source_kind is PointKind.TOPIC:
            evidence["group_committed"] = {
                str(copy["partition"]): context.committed.get(copy["partition"]) for copy in copies.source(row)
            }
        rows.append(
            {
                "hop": context.hop,
                "key": row["key"],
                "key_hash": row["key_hash"],
                "verdict": row["verdict"],
                "cause": cause.value,
                "evidence": json.dumps(evidence, sort_keys=True, ensure_ascii=False, default=str),
            }
        )
    return pl.DataFrame(rows, schema=FINDINGS)


class _Copies:
    """The copies of the wanted keys on both sides, by key."""

    def __init__(self, wanted: pl.DataFrame, context: HopContext) -> None:
        self._source = _by_key(context.source, wanted)
        self._target = _by_key(context.target, wanted)
        self._unconsumed = set(context.unconsumed.select(HASH).rows())

    def source(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self._source.get((row["key_hi"], row["key_lo"]), [])

    def target(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self._target.get((row["key_hi"], row["key_lo"]), [])

    def is_unconsumed(self, row: Mapping[str, Any]) -> bool:
        return (row["key_hi"], row["key_lo"]) in self._unconsumed


def _by_key(frame: pl.DataFrame, wanted: pl.DataFrame) -> dict[tuple[int, int], list[dict[str, Any]]]:
    order = ("partition", "offset") if "offset" in frame.columns else ("place",)
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in frame.join(wanted.select(HASH), on=HASH, how="semi").sort(order).iter_rows(named=True):
        found.setdefault((row["key_hi"], row["key_lo"]), []).append(row)
    return found


def _evidence(row: Mapping[str, Any], copies: _Copies) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "in_source": row["in_source"],
        "source_copies": row["source_copies"],
        "target_copies": row["target_copies"],
        "source": [_copy(copy) for copy in copies.source(row)[:_PLACES_SHOWN]],
        "target": [_copy(copy) for copy in copies.target(row)[:_PLACES_SHOWN]],
    }
    if row["row_hash"] is not None:
        evidence["row_hash"] = str(row["row_hash"])
    if copies.source(row):
        first = next((copy for copy in copies.source(row) if not copy.get("is_aborted")), copies.source(row)[0])
        evidence["values"] = {name[2:]: value for name, value in first.items() if name.startswith("c:")}
    if row["elsewhere_copies"]:
        evidence["elsewhere"] = list(row["elsewhere_places"][:_PLACES_SHOWN])
    if row["verdict"] == Verdict.MISMATCHED.value:
        evidence["columns"] = _differences(copies.source(row), copies.target(row))
    return evidence


def _copy(copy: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"place": copy["place"]}
    shown |= {name: copy[name] for name in _IDENTITY if copy.get(name) is not None}
    if copy.get("is_aborted"):
        shown["aborted"] = True
    if copy.get("time") is not None:
        shown["time"] = copy["time"].isoformat()
    return shown


def _differences(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> dict[str, Any]:
    if not source or not target:
        return {}
    left, right = source[0], target[0]
    names = [name for name in left if name.startswith("c:") and left[name] != right.get(name)]
    return {name.removeprefix("c:"): {"source": left[name], "target": right.get(name)} for name in names}


def _cause(row: Mapping[str, Any], copies: _Copies, context: HopContext) -> Cause:
    match Verdict(row["verdict"]):
        case Verdict.MISSING:
            return _cause_of_missing(row, copies, context)
        case Verdict.DUPLICATE:
            return _cause_of_duplicate(row, copies, context)
        case Verdict.MISMATCHED:
            return Cause.VALUE_DIFFERS
        case Verdict.UNEXPECTED:
            aborted = any(copy.get("is_aborted") for copy in copies.source(row))
            return Cause.READ_UNCOMMITTED if aborted else Cause.NOT_IN_SOURCE
        case Verdict.PENDING:
            return Cause.NOT_YET_CONSUMED if copies.is_unconsumed(row) else Cause.IN_FLIGHT
        case _:
            return Cause.UNREADABLE_SOURCE


def _cause_of_missing(row: Mapping[str, Any], copies: _Copies, context: HopContext) -> Cause:
    if context.target_kind is PointKind.TOPIC:
        aborted = any(copy.get("is_aborted") for copy in copies.target(row))
        return Cause.ABORTED if aborted else Cause.NEVER_PRODUCED
    if context.source_kind is PointKind.TOPIC and context.committed:
        return Cause.COMMITTED_BEFORE_WRITTEN
    return Cause.LOST_AFTER_TOPIC if context.source_kind is PointKind.TOPIC else Cause.NEVER_WRITTEN


def _cause_of_duplicate(row: Mapping[str, Any], copies: _Copies, context: HopContext) -> Cause:
    if context.target_kind is not PointKind.TOPIC:
        return Cause.UPSTREAM_DUPLICATE if row["source_copies"] > 1 else Cause.WRITTEN_BEFORE_COMMITTED
    originals = [copy for copy in copies.target(row) if not copy["is_aborted"] and copy["replay_plan"] is None]
    if any(copy["producer_id"] < 0 for copy in originals):
        return Cause.RETRY_WITHOUT_IDEMPOTENCE
    identities = [
        tuple(copy[name] for name in ("partition", "producer_id", "producer_epoch", "sequence")) for copy in originals
    ]
    return Cause.SEQUENCE_REPEATED if len(set(identities)) < len(identities) else Cause.APPLICATION_RESEND
