"""How many keys a truncation took from a topic, and how many of them the window saw again: kept with the incident."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from makewhole.compute.frames import HASH
from makewhole.compute.judge import committed
from makewhole.compute.log_history import truncated_copies
from makewhole.journal import incidents
from makewhole.lake.storage import Storage
from makewhole_spark.carrier import carry
from makewhole_spark.reconcile.bucket_tasks import CutWindow, NeighbouringWindows, cut_windows

_COLUMNS = [*HASH, "partition", "offset", "is_aborted"]


@dataclass(frozen=True, kw_only=True)
class CutKeysTask:
    """One bucket of one earlier window, with the snapshot of now."""

    storage: Storage
    files: tuple[str, ...]
    limits: Mapping[int, int]
    files_now: tuple[str, ...]


def count_cut_keys(spark: SparkSession, past: NeighbouringWindows) -> None:
    """Add `keys` and `seen_again` to the incidents of the truncations that this window noticed."""
    for point in (one.name for one in past.context.pipeline.ordered_points()):
        if not past.log(point).truncated:
            continue
        cuts = [cut for cut in cut_windows(past, point) if cut.limits_now]
        tasks = [task for cut in cuts for task in _tasks(past, cut)]
        counts = _sums(carry(spark, tasks, cut_keys))
        told = [
            replace(one, detail={**one.detail, **dict(zip(("keys", "seen_again"), counts[one.partition], strict=True))})
            for one in past.log(point).truncated
            if one.partition in counts
        ]
        incidents.put(past.journal, past.context.window, told)


def _tasks(past: NeighbouringWindows, cut: CutWindow) -> list[CutKeysTask]:
    now = past.manifests[cut.point]["files"]
    return [
        CutKeysTask(
            storage=past.context.storage,
            files=tuple(files),
            limits=cut.limits_now,
            files_now=tuple(now.get(bucket, ())),
        )
        for bucket, files in cut.buckets(past).items()
    ]


def cut_keys(task: CutKeysTask) -> Mapping[int, tuple[int, int]]:
    """By partition: the distinct keys that are gone from it, and how many of them the window has anywhere."""
    before = task.storage.read_parquet(task.files, _COLUMNS)
    assert before is not None
    lost = truncated_copies(committed(before), task.limits).select("partition", *HASH).unique()
    now = task.storage.read_parquet(task.files_now, _COLUMNS)
    again = lost.clear() if now is None else lost.join(committed(now), on=HASH, how="semi")
    seen = dict(again.group_by("partition").len().rows())
    return {partition: (keys, seen.get(partition, 0)) for partition, keys in lost.group_by("partition").len().rows()}


def _sums(parts: Sequence[Mapping[int, tuple[int, int]]]) -> dict[int | None, tuple[int, int]]:
    total: dict[int | None, tuple[int, int]] = {}
    for part in parts:
        for partition, (keys, seen) in part.items():
            known = total.get(partition, (0, 0))
            total[partition] = (known[0] + keys, known[1] + seen)
    return total
