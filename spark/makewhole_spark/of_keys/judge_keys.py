"""Judge some keys of a window alone, with the steps of whole windows, and commit nothing."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.keys import hash_hex, with_hash
from makewhole.journal.results.snapshot_manifests import read_with
from makewhole.kafka.lineage import divergence
from makewhole.kafka.offsets import TopicLog, describe_topic
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.hops import Hop
from makewhole.model.points import TopicPoint, has_log
from makewhole.model.verdict import Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.configuration import reading_sha256
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.of_keys.narrowed import NarrowedSnapshots, WindowOfKeys, narrowed_snapshots
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.gather.bucket_tasks import bucket_tasks
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from makewhole_spark.reconcile.judge_window import judge_again
from makewhole_spark.reconcile.stored_findings import first_findings
from makewhole_spark.replayed import require_replayed

_FINDINGS_MOST = 10_000_000


@dataclass(frozen=True, kw_only=True)
class KeyVerdict:
    """The verdict on a key on a hop of a window, by what is there now. `verdict` None: the key alone does not give one;
    `reason` says why."""

    window: int
    revision: int
    hop: str
    key: str
    verdict: str | None
    cause: str | None = None
    reason: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


def judge_keys(
    carrier: Carrier, journal: PgConnection, context: WindowContext, manifests: Mapping[str, Any], keys: Sequence[str]
) -> list[KeyVerdict]:
    """Return the verdicts on business keys on every hop of a window, of which `manifests` are the snapshots, in the
    order of the hops and keys. A hop on which the window has nothing of a key has no verdict on it.

    Nothing is committed: no window is opened, certified or revoked, and no plan is made of it.

    Raises:
        RefusedError: the snapshots say nothing any more: the file reads points in another way, or a log that they were
            taken of was cut off or made again. The window is then judged whole.
        TransientError: a system does not answer.
    """
    require_same_points(context, manifests)
    require_replayed(journal, context)
    window = _of_keys(context.window)
    own = replace(context, window=window)
    try:
        asked = with_hash(pl.DataFrame({"key": list(dict.fromkeys(keys))}, schema={"key": pl.String}))
        narrowed = narrowed_snapshots(own, manifests, asked)
        neighbours = NeighbouringWindows(journal=journal, context=own, manifests=narrowed.manifests)
        return [
            found
            for hop in context.pipeline.hops
            for found in _verdicts(own, hop, _answers(carrier, neighbours, hop), narrowed, asked)
        ]
    finally:
        for file in own.storage.files_below(window.prefix):
            own.storage.remove(file.path)


def _of_keys(window: Window) -> WindowOfKeys:
    known = {item.name: getattr(window, item.name) for item in fields(Window)}
    return WindowOfKeys(**known, folder=uuid.uuid4().hex)


def require_same_points(context: WindowContext, manifests: Mapping[str, Any]) -> None:
    """Check that the snapshots of a window are of the points as they are.

    Raises:
        RefusedError: they are not.
        PermanentError: a point has no snapshot.
    """
    label, now = context.window.label, reading_sha256(context.pipeline)
    for point in context.pipeline.ordered_points():
        if point.name not in manifests:
            raise PermanentError(f"{label} has no snapshot of {point.name}; {_whole(context)}")
        if read_with(manifests[point.name]) != now:
            raise RefusedError(f"{label} was read with another configuration than the file has now; {_whole(context)}")
        if has_log(point):
            _require_same_log(context, point)


def _require_same_log(context: WindowContext, point: TopicPoint) -> None:
    kafka, parts = context.kafka(point), context.window.ranges.get(point.name, ())
    if not {part.topic_id for part in parts} <= {describe_topic(kafka, point.topic).topic_id}:
        raise RefusedError(f"topic {point.topic} was made again since {context.window.label}; {_whole(context)}")
    with TopicLog(kafka, point.topic) as log:
        for part in parts:
            if not part.leader_epochs:
                continue

            def end_of(epoch: int, partition: int = part.partition) -> Any:
                return log.end_of_leader_epoch(partition, epoch)

            if divergence(end_of, part.leader_epochs, part.lo) < part.hi:
                raise RefusedError(
                    f"records of {part.topic}/{part.partition} that {context.window.label} had read are gone, as a new "
                    f"leader did not have them; {_whole(context)}"
                )


def _whole(context: WindowContext) -> str:
    pipeline, number = context.pipeline.name, context.window.number
    return f"judge the whole window: `makewhole run {pipeline} --window {number}`"


def _answers(carrier: Carrier, neighbours: NeighbouringWindows, hop: Hop) -> list[BucketAnswer]:
    """Judge the buckets of a hop that hold any of the keys."""
    names = {name for manifest in neighbours.manifests.values() for name in manifest["files"]}
    buckets = set(neighbours.own_buckets(names)) if names else set[str]()
    tasks = [task for task in bucket_tasks(neighbours, hop) if task.bucket in buckets] if buckets else []
    answers = carry_released(carrier, neighbours.journal, tasks, judge_bucket)
    return judge_again(carrier, neighbours, tasks, answers)


def _verdicts(
    context: WindowContext,
    hop: Hop,
    answers: Sequence[BucketAnswer],
    narrowed: NarrowedSnapshots,
    asked: pl.DataFrame,
) -> Iterator[KeyVerdict]:
    window = context.window
    judged = _judged(context, answers)
    paths = [answer.findings for answer in answers if answer.findings]
    findings = {item.key_hash: item for item in first_findings(context.storage, paths, _FINDINGS_MOST, ())}
    clean = asked.join(narrowed.held[hop.source], on=HASH, how="semi").join(
        narrowed.held[hop.target], on=HASH, how="semi"
    )
    hashes = dict(asked.select("key", hash_hex()).iter_rows())
    both = {key for key in clean["key"] if hashes[key] not in judged}
    if len(both) != sum(answer.clean for answer in answers):
        raise PermanentError(f"{window.label}: {len(both)} keys of {hop.name} have no verdict, and are not all clean")
    for key in asked["key"]:
        hashed, unsure = hashes[key], narrowed.unsure.get(key)
        verdict, cause = judged.get(hashed, (Verdict.MATCHED.value if key in both else None, None))
        found: Finding | None = findings.get(hashed)
        if verdict is None and unsure is None:
            continue
        yield KeyVerdict(
            window=window.number,
            revision=window.revision,
            hop=hop.name,
            key=key,
            verdict=verdict if unsure is None else None,
            cause=cause if unsure is None else None,
            reason=None if unsure is None else f"{unsure}; {_whole(context)}",
            evidence={} if found is None or unsure is not None else found.evidence,
        )


def _judged(context: WindowContext, answers: Sequence[BucketAnswer]) -> dict[str, tuple[str, str | None]]:
    """Return verdict and cause by the hash of the keys that are not clean."""
    rows = context.storage.read_parquet([answer.verdicts for answer in answers], ["key_hash", "verdict", "cause"])
    return {} if rows is None else {hashed: (verdict, cause) for hashed, verdict, cause in rows.iter_rows()}
