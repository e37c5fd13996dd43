"""Count the keys that a truncation took from a topic, and those of them that the window has again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.log_history import truncated_copies
from makewhole.journal import incidents
from makewhole.lake.storage import Storage
from makewhole.model.incident import Incident
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.reconcile.gather.neighbouring_windows import (
    NeighbouringWindows,
    TruncatedWindow,
    truncated_windows,
)

_COLUMNS = [*HASH, "partition", "offset", "is_aborted"]


@dataclass(frozen=True, kw_only=True)
class TruncatedKeysTask:
    """One bucket of an earlier window's snapshot, and the same bucket of this window's."""

    storage: Storage
    files: tuple[str, ...]
    limits: Mapping[int, int]
    files_now: tuple[str, ...]


def count_truncated_keys(carrier: Carrier, neighbours: NeighbouringWindows) -> None:
    """Add `keys` and `seen_again` to the incidents of the truncations that this window noticed."""
    counted: list[Incident] = []
    for name in (point.name for point in neighbours.context.pipeline.ordered_points()):
        if not neighbours.log(name).truncated:
            continue
        reached = [window for window in truncated_windows(neighbours, name) if window.limits_now]
        tasks = [task for window in reached for task in _tasks(neighbours, window)]
        counts = _added_up(carry_released(carrier, neighbours.journal, tasks, count_in_bucket))
        named = {at: dict(zip(("keys", "seen_again"), count, strict=True)) for at, count in counts.items()}
        counted += [
            replace(incident, detail={**incident.detail, **named[incident.partition]})
            for incident in neighbours.log(name).truncated
            if incident.partition in named
        ]
    incidents.put(neighbours.journal, neighbours.context.window, counted)


def _tasks(neighbours: NeighbouringWindows, truncated: TruncatedWindow) -> list[TruncatedKeysTask]:
    now = neighbours.manifests[truncated.point]["files"]
    return [
        TruncatedKeysTask(
            storage=neighbours.context.storage,
            files=tuple(files),
            limits=truncated.limits_now,
            files_now=files_of_bucket(now, bucket),
        )
        for bucket, files in truncated.files_by_bucket(neighbours).items()
    ]


def count_in_bucket(task: TruncatedKeysTask) -> Mapping[int, tuple[int, int]]:
    """Return, by partition, the number of distinct truncated keys, and of those that the window has anywhere."""
    before = task.storage.read_parquet(task.files, _COLUMNS)
    assert before is not None
    lost = truncated_copies(committed_copies(before), task.limits).select("partition", *HASH).unique()
    now = task.storage.read_parquet(task.files_now, _COLUMNS)
    again = lost.clear() if now is None else lost.join(committed_copies(now), on=HASH, how="semi")
    seen = dict(again.group_by("partition").len().rows())
    return {partition: (keys, seen.get(partition, 0)) for partition, keys in lost.group_by("partition").len().rows()}


def _added_up(parts: Sequence[Mapping[int, tuple[int, int]]]) -> dict[int | None, tuple[int, int]]:
    total: dict[int | None, tuple[int, int]] = {}
    for part in parts:
        for partition, (keys, seen) in part.items():
            known = total.get(partition, (0, 0))
            total[partition] = (known[0] + keys, known[1] + seen)
    return total
