"""Judge some keys of a window alone, with the steps of whole windows, and commit nothing."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import polars as pl

from makewhole.compute.keys import hash_hex, with_hash
from makewhole.kafka.offsets import TopicLog
from makewhole.lake.stored_verdicts import VerdictFiles, judged_as, stored_verdicts
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.hops import Hop
from makewhole.model.points import Point, has_log
from makewhole.model.verdict import Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext, window_context
from makewhole.window.opening.as_read_now import as_read_now
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.of_keys.narrowed import NarrowedSnapshots, WindowOfKeys, narrowed_snapshots
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.gather.bucket_tasks import bucket_tasks
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from makewhole_spark.reconcile.judge_window import judge_again
from makewhole_spark.reconcile.stored_findings import first_findings
from makewhole_spark.replayed import require_replayed
from makewhole_spark.snapshot.bucket_count import BUCKETS
from makewhole_spark.snapshot.reuse.read_as import differs_in, read_as
from makewhole_spark.snapshot.reuse.same_log import why_not_same_records

_FINDINGS_MOST = 10_000_000
_NO_ROWS: Mapping[str, Any] = {"verdicts_by_bucket": {}}


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
    order of the hops and keys. A hop on which the window has nothing of a key has no verdict on it, nor has one on
    which it holds copies that count for nothing: of an aborted transaction, or kept out by the hop's filter.

    Nothing is committed: no window is opened, certified or revoked, and no plan is made of it.

    Raises:
        RefusedError: a revision of the window would read a point in another way, by types, code or file, or a log was
            cut off or made again, or may have been. The window is then judged whole.
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
            verdict
            for hop in context.pipeline.hops
            for verdict in _verdicts(neighbours, hop, _answers(carrier, neighbours, hop), narrowed, asked)
        ]
    finally:
        for file in own.storage.files_below(window.prefix):
            own.storage.remove(file.path)


def _of_keys(window: Window) -> WindowOfKeys:
    known = {item.name: getattr(window, item.name) for item in fields(Window)}
    return WindowOfKeys(**known, folder=uuid.uuid4().hex)


def require_same_points(context: WindowContext, manifests: Mapping[str, Any]) -> None:
    """Check that a revision of the window would read its points as its snapshots were read, and the same records.

    Raises:
        RefusedError: it would not.
        PermanentError: a point has no snapshot, or tables cannot be read as the file says.
        TransientError: a server does not answer.
    """
    pipeline, label = context.pipeline.as_written or context.pipeline, context.window.label
    absent = [point.name for point in pipeline.ordered_points() if point.name not in manifests]
    if absent:
        raise PermanentError(f"{label} has no snapshot of {absent[0]}; {_whole(context)}")
    now = window_context(as_read_now(pipeline, context.connections, context.window), pipeline)
    for point in now.pipeline.ordered_points():
        manifest = manifests[point.name]
        reason = _why_other_records(now, point) or differs_in(manifest, read_as(now, point, manifest[BUCKETS]))
        if reason is not None:
            raise RefusedError(f"{label} does not show what {point.name} has now: {reason}; {_whole(context)}")


def _why_other_records(context: WindowContext, point: Point) -> str | None:
    if not has_log(point):
        return None
    with TopicLog(context.kafka(point), point.topic) as log:
        return why_not_same_records(log, context.window.ranges.get(point.name, ()))


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
    neighbours: NeighbouringWindows,
    hop: Hop,
    answers: Sequence[BucketAnswer],
    narrowed: NarrowedSnapshots,
    asked: pl.DataFrame,
) -> Iterator[KeyVerdict]:
    context, window = neighbours.context, neighbours.context.window
    judged = _judged(context, answers)
    paths = [answer.findings for answer in answers if answer.findings]
    findings = {item.key_hash: item for item in first_findings(context.storage, paths, _FINDINGS_MOST, ())}
    hashes = dict(asked.select("key", hash_hex()).iter_rows())
    clean = _clean(neighbours, hop, answers, {*hashes.values()} - {*judged})
    for key in asked["key"]:
        hashed, unsure = hashes[key], narrowed.unsure.get(key)
        verdict, cause = judged.get(hashed, (Verdict.MATCHED.value if hashed in clean else None, None))
        finding: Finding | None = findings.get(hashed)
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
            evidence={} if finding is None or unsure is not None else finding.evidence,
        )


def _judged(context: WindowContext, answers: Sequence[BucketAnswer]) -> dict[str, tuple[str, str | None]]:
    """Return verdict and cause by the hash of the keys that are not clean."""
    rows = context.storage.read_parquet([answer.verdicts for answer in answers], ["key_hash", "verdict", "cause"])
    return {} if rows is None else {hashed: (verdict, cause) for hashed, verdict, cause in rows.iter_rows()}


def _clean(neighbours: NeighbouringWindows, hop: Hop, answers: Sequence[BucketAnswer], left: set[str]) -> set[str]:
    """Return those of the keys without a row among the verdicts (`left`) that the first pass took out, by its own rule.
    Any other was not judged."""
    context, clean = neighbours.context, set[str]()
    slices = [neighbours.manifests[name]["files"] for name in (hop.source, hop.target)]
    for answer in answers:
        files = {**judged_as(context.pipeline, hop), "summary": {"clean": answer.clean}, **_NO_ROWS}
        of_bucket = VerdictFiles.of(hop.name, files, slices, answer.bucket)
        hashes = {*stored_verdicts(context.storage, of_bucket, left)["key_hash"]}
        if len(hashes) != answer.clean:
            said = f"{answer.clean} of some keys of {hop.name} were clean, and {len(hashes)} are found to be"
            raise PermanentError(f"{context.window.label}: {said}")
        clean |= hashes
    return clean
