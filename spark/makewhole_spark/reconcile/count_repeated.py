"""Count the keys with several records in topics that nothing feeds, bucket by bucket, where the file asks for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from makewhole.compute.frames import HASH, Schema
from makewhole.compute.indexed_keys.former_readings import as_read_now
from makewhole.compute.judge.judge_copies import mark_replays
from makewhole.compute.judge.repeated_keys import Order, repeated_keys
from makewhole.compute.rollup import digest_of_matched
from makewhole.key_index.files import IndexFile, maybe_known, rows_of_keys
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.lake.storage import Storage
from makewhole.model.hops import Semantics
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_at
from makewhole.model.points import TopicPoint, has_log, is_by_coordinates, is_by_sequence
from makewhole.model.text import BY_SEQUENCE, NOT_NUMBERED
from makewhole.model.verdict import Repeat
from makewhole.native.sort_hashes import sort_hashes
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows, truncated_windows
from makewhole_spark.reconcile.gather.point_facts import runs_before

_LISTED_KEYS, _LISTED_PLACES = 5, 5


@dataclass(frozen=True, kw_only=True)
class RepeatTask:
    """One bucket of a topic's snapshot, with the records that compensation wrote there, and what the key index has of
    the windows before. `cut`: by window and partition, from which offset on truncations took its records."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: BucketRows
    before: tuple[IndexFile, ...]
    cut: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class RepeatsOfBucket:
    """The keys of a bucket with several records: their number by what they are, the records beyond the first of each,
    the first keys as the journal has them, and the file of all. `digest`: of the records of a topic alone."""

    point: str
    keys: Mapping[str, int]
    extra: int
    digest: int = 0
    first: tuple[Mapping[str, Any], ...] = ()
    path: str | None = None


def repeat_tasks(neighbours: NeighbouringWindows) -> list[RepeatTask]:
    """Return the tasks that count, of each topic of which the file asks for it."""
    return [
        RepeatTask(
            context=neighbours.context,
            point=point.name,
            bucket=bucket,
            files=tuple(files),
            replays=neighbours.replays(point.name).in_bucket(bucket),
            before=runs_before(neighbours, point.name, bucket),
            cut=tuple(
                (cut.window.number, partition, lo)
                for cut in truncated_windows(neighbours, point.name)
                for partition, lo in cut.limits.items()
            ),
        )
        for point in _asked(neighbours.context.pipeline)
        for bucket, files in neighbours.manifests[point.name]["files"].items()
    ]


def count_repeats(task: RepeatTask) -> RepeatsOfBucket:
    """Count the keys of a bucket, and write those with several records."""
    context, storage = task.context, task.context.storage
    point = context.pipeline.topic(task.point)
    digest = _digest(storage, task.files) if point in context.pipeline.topics_alone else 0
    hashes = storage.read_parquet(task.files, list(HASH))
    may_repeat = _may_repeat(hashes, maybe_known(storage, task.before, hashes)) if hashes is not None else None
    if hashes is None or may_repeat is None or not may_repeat.any():
        return RepeatsOfBucket(point=task.point, keys={}, extra=0, digest=digest)
    copies = storage.read_rows(task.files, may_repeat)
    assert copies is not None
    pipeline, compared = context.pipeline, compared_at(context.pipeline, task.point)
    order = _order(pipeline, task.point)
    known = without_cut_off(rows_of_keys(storage, task.before, hashes.filter(pl.Series(may_repeat))), task.cut)
    known = as_read_now(known, compared, is_upsert=order is Order.LOG)
    if is_by_coordinates(point.key):  # a record without a value ends nothing: it is one more record
        copies, known = (frame.with_columns(pl.col(r"^(last_)?is_tombstone$") & False) for frame in (copies, known))
    marked = mark_replays(copies, task.replays.read(storage))
    repeats = repeated_keys(marked, known, order, is_compared=bool(compared))
    folder = f"{context.window.prefix}/{task.point}/repeated/bucket={task.bucket}"
    return RepeatsOfBucket(
        point=task.point,
        keys=dict(repeats["repeat"].value_counts().rows()),
        extra=int(repeats["extra"].sum()),
        digest=digest,
        first=tuple(_listed(row) for row in repeats.head(_LISTED_KEYS).to_dicts()),
        path=storage.write_parquet(folder, repeats) if len(repeats) else None,
    )


def without_cut_off(known: pl.DataFrame, cut: Sequence[tuple[int, int, int]]) -> pl.DataFrame:
    """Return what the index has of keys without the records that truncations took since: a producer that sends these
    again repeats nothing. `cut`: the first offset that is gone, of a window and a partition."""
    if not cut:
        return known
    columns: Schema = {"window": known.schema["window"], "at": pl.Int32, "lo": pl.Int64}
    gone = pl.DataFrame(list(cut), schema=columns, orient="row")
    for name in ("partition", "last_partition"):
        limits = gone.rename({"at": name, "lo": f"_{name}_lo"})
        known = known.join(limits, on=["window", name], how="left", maintain_order="left")
    is_first_gone, is_last_gone = (
        (pl.col(f"{side}offset") >= pl.col(f"_{side}partition_lo")).fill_null(False) for side in ("", "last_")
    )
    of_last = [name for name in known.columns if name.startswith("last_")]
    kept = known.filter(~is_first_gone).with_columns(pl.when(~is_last_gone).then(pl.col(of_last)).name.keep())
    return kept.drop("_partition_lo", "_last_partition_lo")


def _digest(storage: Storage, files: Sequence[str]) -> int:
    """Return a digest of the committed records of a bucket, by keys and compared values, in any order."""
    rows = storage.read_parquet(files, [*HASH, "row_hash", "is_aborted"])
    if rows is None:
        return 0
    return digest_of_matched(rows.filter(~pl.col("is_aborted")).with_columns(pl.col("row_hash").fill_null(0)))


def _may_repeat(hashes: pl.DataFrame, is_known: Any) -> Any:
    """Return which rows share half of their hash with another one, or may be known from before."""
    ascending, order = sort_hashes(hashes["key_hi"].to_numpy())
    follows = ascending[1:] == ascending[:-1]
    is_repeated = np.zeros(len(hashes), dtype=np.bool_)
    is_repeated[order[1:][follows]] = True
    is_repeated[order[:-1][follows]] = True
    return is_repeated | np.asarray(is_known, dtype=np.bool_)


def _listed(row: Mapping[str, Any]) -> dict[str, Any]:
    places = {name: row[name][:_LISTED_PLACES] for name in ("places", "before")}
    return {"key": row["key"], "repeat": row["repeat"], **places}


def _order(pipeline: Pipeline, name: str) -> Order:
    """Return what makes several records of a key several states of it."""
    if pipeline.points[name].version is not None:
        return Order.VERSION
    is_upsert = any(hop.semantics is Semantics.UPSERT for hop in pipeline.hops_from(name))
    return Order.LOG if is_upsert else Order.NOTHING


def repeat_incidents(neighbours: NeighbouringWindows, answers: Sequence[RepeatsOfBucket]) -> Iterator[Incident]:
    """Yield an incident for each topic of which the file asks for it, with the numbers of all its buckets."""
    context = neighbours.context
    for point in _asked(context.pipeline):
        own = [answer for answer in answers if answer.point == point.name]
        by_repeat = {repeat.value: sum(answer.keys.get(repeat.value, 0) for answer in own) for repeat in Repeat}
        ranges = context.window.ranges.get(point.name, ())
        first = sorted((entry for answer in own for entry in answer.first), key=lambda entry: str(entry["key"]))
        yield Incident(
            kind=IncidentKind.REPEATED_KEYS,
            point=point.name,
            topic=point.topic,
            topic_id=ranges[-1].topic_id if ranges else "",
            detail={
                "keys": sum(by_repeat.values()),
                **by_repeat,
                "records": sum(answer.extra for answer in own),
                "first": first[:_LISTED_KEYS],
                "files": [answer.path for answer in own if answer.path is not None],
                **_of_sequences(point, neighbours.manifests[point.name]),
            },
        )


def _of_sequences(point: TopicPoint, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return, of a topic whose key is the sequence of its records, how many have none."""
    return {BY_SEQUENCE: True, NOT_NUMBERED: manifest.get(NOT_NUMBERED, 0)} if is_by_sequence(point.key) else {}


def _asked(pipeline: Pipeline) -> list[TopicPoint]:
    return [point for point in pipeline.ordered_points() if has_log(point) and point.duplicates is not None]
