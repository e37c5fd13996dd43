"""The copies of the keys that need a word, and the evidence that they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.model.verdict import Verdict

CopyFields = dict[str, Any]
FrameRow = Mapping[str, Any]

_IDENTITY = ("partition", "offset", "leader_epoch", "producer_id", "producer_epoch", "sequence", "replay_plan")
_SHOWN = 10
_NAMED = 1_000


class KeyCopies:
    """Copies by key, in the order of the log or of the places of a table."""

    def __init__(self, wanted: pl.DataFrame, frame: pl.DataFrame) -> None:
        order = ("partition", "offset") if "offset" in frame.columns else ("place",)
        self._found: dict[tuple[int, int], list[CopyFields]] = {}
        for row in frame.join(wanted.select(HASH), on=HASH, how="semi").sort(order).iter_rows(named=True):
            self._found.setdefault((row["key_hi"], row["key_lo"]), []).append(row)

    def of(self, row: FrameRow) -> list[CopyFields]:
        """The copies of a judged row's key."""
        return self._found.get((row["key_hi"], row["key_lo"]), [])


def basic_evidence(
    row: FrameRow, source: Sequence[CopyFields], target: Sequence[CopyFields], elsewhere: Sequence[CopyFields]
) -> CopyFields:
    """Places, identities and values: what every finding shows."""
    evidence: dict[str, Any] = {
        "in_source": row["in_source"],
        "source_copies": row["source_copies"],
        "target_copies": row["target_copies"],
        "source": [shown(copy) for copy in source[:_SHOWN]],
        "target": [shown(copy) for copy in target[:_SHOWN]],
    }
    latest = latest_of(row, source)
    if row["row_hash"] is not None:
        evidence["row_hash"] = str(row["row_hash"])
    if latest is not None:
        evidence["values"] = {name[2:]: value for name, value in latest.items() if name.startswith("c:")}
    if row["latest_place"] is not None and latest is not None:
        evidence["latest"] = shown(latest)
    if row["has_later"]:
        evidence["has_later"] = True
    if row["elsewhere_copies"]:
        evidence["elsewhere"] = list(row["elsewhere_places"][:_SHOWN])
        known = [shown(copy) for copy in elsewhere[:_SHOWN] if copy["producer_id"] is not None]
        if known:
            evidence["elsewhere_producers"] = known
    if row["verdict"] == Verdict.DUPLICATE.value and target and "offset" in target[0]:
        evidence["repeated"] = _repeated(row, target)
    if row["verdict"] == Verdict.MISMATCHED.value:
        evidence["columns"] = _differences(latest, target)
    return evidence


def _repeated(row: FrameRow, records: Sequence[CopyFields]) -> CopyFields:
    """The places of a key's committed records here that name no plan, in order, and how many copies are elsewhere: each
    copy beyond the first did its harm, and may have to be reversed."""
    here = [copy["place"] for copy in records if not copy["is_aborted"] and copy["replay_plan"] is None]
    return {"here": here[:_NAMED], "elsewhere": row["elsewhere_copies"]}


def latest_of(row: FrameRow, source: Sequence[CopyFields]) -> CopyFields | None:
    """The source's copy that the target is held against: the latest version, or of an event the first one committed."""
    if row["latest_place"] is not None:
        return next((copy for copy in source if copy["place"] == row["latest_place"]), None)
    return next((copy for copy in source if not copy.get("is_aborted")), source[0] if source else None)


def shown(copy: FrameRow) -> CopyFields:
    """A copy as evidence tells it."""
    told = {"place": copy["place"]}
    told |= {name: copy[name] for name in _IDENTITY if copy.get(name) is not None}
    if copy.get("version") is not None:
        told["version"] = copy["version"]
    if copy.get("is_aborted"):
        told["aborted"] = True
    if copy.get("is_tombstone"):
        told["tombstone"] = True
    if copy.get("time") is not None:
        told["time"] = copy["time"].isoformat()
    return told


def _differences(latest: CopyFields | None, target: Sequence[CopyFields]) -> CopyFields:
    if latest is None or not target:
        return {}
    # Of several versions in a topic the last one counts; a row of a table has no other beside it.
    right = next((copy for copy in reversed(target) if not copy.get("is_aborted")), target[-1])
    names = [name for name in latest if name.startswith("c:") and latest[name] != right.get(name)]
    return {name.removeprefix("c:"): {"source": latest[name], "target": right.get(name)} for name in names}
