"""One bucket of one hop, judged on an executor: gather what is known of its keys, ask the kernel, write the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.causes import HopContext, explain
from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, KEYS, REPLAYS, TOPIC_KEYS, VERDICTS, Schema, empty
from makewhole.compute.judge import BucketInput, judge
from makewhole.compute.normalise import table_frame
from makewhole.config.context import WindowContext
from makewhole.model.pipeline import Hop, PointKind, TablePoint
from makewhole.model.verdict import GAPS, HopCounts, Verdict
from makewhole.postgres.export import read_keys
from makewhole.postgres.visibility import not_visible


@dataclass(frozen=True, kw_only=True)
class IndexFiles:
    """The runs of the key index for a bucket: of the windows before this one, and of those after."""

    earlier: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BucketTask:
    """What an executor is told of a bucket: files below the storage root, and what the driver asked once for all."""

    context: WindowContext
    hop: Hop
    bucket: str
    source_files: tuple[str, ...]
    target_files: tuple[str, ...]
    source_index: IndexFiles
    target_index: IndexFiles
    handed_over: tuple[tuple[str, int, int], ...]
    handed_over_files: tuple[str, ...]
    settled_offsets: Mapping[int, int] | None
    settled_snapshot: str | None
    group_committed: Mapping[int, int] | None
    replays: pl.DataFrame = field(default_factory=lambda: empty(REPLAYS))
    tails: Mapping[str, list[str]] | None = None


@dataclass(frozen=True, kw_only=True)
class BucketAnswer:
    """Counts, digest and files of a judged bucket. `wanted`: files with hashes that a topic's tail must be asked for.

    `expected`: how many verdicts there must be, counted from the snapshot's own rows, not from the verdicts.
    """

    hop: str
    bucket: str
    counts: HopCounts
    digest: int
    expected: int
    without_source: int
    verdicts: str
    findings: str | None
    wanted: Mapping[str, str]


def judge_bucket(task: BucketTask) -> BucketAnswer:
    """Judge, confirm every absence and every stranger, judge again, explain, write."""
    known = _gather(task)
    judged = judge(known)
    known = _confirm(task, known, judged)
    judged = judge(known)
    wanted = {} if task.tails is not None else _write_wanted(task, judged)
    return _write(task, known, judged, wanted)


# What is known


def _gather(task: BucketTask) -> BucketInput:
    source = _frame(task, task.hop.source, task.source_files)
    target = _frame(task, task.hop.target, task.target_files)
    names: Schema = {"key": pl.String, **HASHES}
    handed = pl.DataFrame(list(task.handed_over), schema=names, orient="row")
    if len(handed):
        earlier = _frame(task, task.hop.source, task.handed_over_files).join(handed, on=HASH, how="semi")
        source = pl.concat([source, earlier], how="diagonal_relaxed")
    known = BucketInput(
        hop=task.hop.name,
        source=source,
        target=target,
        source_elsewhere=pl.concat(_elsewhere(task, task.hop.source, task.source_index)),
        target_elsewhere=_first_found(target, *_elsewhere(task, task.hop.target, task.target_index)),
        handed_over=handed,
        replays=task.replays,
    )
    return replace(known, unsettled=_unsettled_offsets(task, source))


def _frame(task: BucketTask, point: str, files: tuple[str, ...]) -> pl.DataFrame:
    frame = task.context.storage.read_parquet(files)
    if frame is not None:
        return frame
    is_topic = task.context.pipeline.points[point].kind is PointKind.TOPIC
    compared: Schema = {f"c:{name}": pl.String for name in task.context.pipeline.compare}
    return empty((TOPIC_KEYS if is_topic else KEYS) | compared)


def _elsewhere(task: BucketTask, point: str, index: IndexFiles) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Copies in earlier windows, and in later ones or in what was read of the log's tail."""
    frames = []
    for files in (index.earlier, index.later):
        runs = task.context.storage.read_parquet(files)
        frames.append(empty(ELSEWHERE) if runs is None else runs.select(*ELSEWHERE))
    tail = _tail(task, point)
    if tail is not None:
        frames[1] = pl.concat([frames[1], tail.filter(~pl.col("is_open")).select(*ELSEWHERE)])
    return frames[0], frames[1].unique(maintain_order=True)


def _first_found(target: pl.DataFrame, earlier: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    """A later copy counts only where there is none before it: a repeat is judged in the window that it falls into."""
    if later.is_empty():
        return earlier
    here = target.filter(~pl.col("is_aborted")) if "is_aborted" in target.columns else target
    found = pl.concat([here.select(HASH), earlier.select(HASH)]).unique()
    first_places = later.join(found, on=HASH, how="anti").sort(*HASH, "is_replay", "place")
    return pl.concat([earlier, first_places.unique(subset=HASH, keep="first", maintain_order=True)])


def _tail(task: BucketTask, point: str) -> pl.DataFrame | None:
    if task.tails is None or not task.tails.get(point):
        return None
    tail = task.context.storage.read_parquet(task.tails[point])
    return None if tail is None else tail.filter(pl.col("key_hi") % task.context.pipeline.buckets == int(task.bucket))


def _unsettled_offsets(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Keys whose record is too young, or that the consumer group has not reached."""
    frames = [empty(HASHES)]
    if "offset" in source.columns:
        for limits in (task.settled_offsets, task.group_committed):
            if limits is not None:
                frames.append(_beyond(source, limits))
    tail = _tail(task, task.hop.target)
    if tail is not None:
        frames.append(tail.filter(pl.col("is_open")).select(HASH))
    return pl.concat(frames).unique()


def _beyond(source: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    bounds = pl.DataFrame(list(limits.items()), schema={"partition": pl.Int32, "limit": pl.Int64}, orient="row")
    joined = source.join(bounds, on="partition", how="left")
    return joined.filter(pl.col("offset") >= pl.col("limit").fill_null(0)).select(HASH)


# Look-ups that confirm


def _confirm(task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> BucketInput:
    """Ask tables anew: for keys that seem missing, for strangers, and for the age of what the ledger alone has.

    Of a key that the source has in another window, the slice may hold only the newest of several rows.
    """
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    strangers = judged.filter(~pl.col("in_source"))
    missing = judged.filter(pl.col("verdict") == Verdict.MISSING.value)
    if isinstance(target, TablePoint):
        beside = known.target.join(judged.filter("in_source"), on=HASH, how="anti").select("key", *HASH).unique()
        asked = pl.concat([missing.select("key", *HASH), beside]).sort(HASH)
        rows = _lookup(task, target, asked)
        # What was asked anew is known anew: a row that was updated since has another place, and is still one row.
        others = known.target.join(asked, on=HASH, how="anti")
        known = replace(known, target=pl.concat([others, rows], how="diagonal_relaxed"))
    if isinstance(source, TablePoint):
        found = _lookup(task, source, strangers).filter(~pl.col("excluded_by").list.contains(task.hop.name))
        elsewhere = found.select(*HASH, "place", pl.lit(False).alias("is_replay"), "row_hash")
        known = replace(known, source_elsewhere=pl.concat([known.source_elsewhere, elsewhere]))
        known = replace(known, unsettled=pl.concat([known.unsettled, _young(task, source, missing)]).unique())
    return known


def _lookup(task: BucketTask, point: TablePoint, judged: pl.DataFrame) -> pl.DataFrame:
    shape, connection = task.context.table_shape(point), task.context.postgres(point)
    frames = [
        table_frame(frame, dict(task.context.pipeline.compare))[0]
        for frame in read_keys(connection, shape, judged["key"].to_list())
    ]
    return pl.concat(frames) if frames else _frame(task, point.name, ())


def _young(task: BucketTask, point: TablePoint, missing: pl.DataFrame) -> pl.DataFrame:
    """Missing keys whose ledger row was not yet visible a settle time ago."""
    if missing.is_empty() or task.settled_snapshot is None:
        return empty(HASHES)
    shape, connection = task.context.table_shape(point), task.context.postgres(point)
    young = not_visible(connection, shape, missing["key"].to_list(), task.settled_snapshot)
    return missing.filter(pl.col("key").is_in(young)).select(HASH)


def _write_wanted(task: BucketTask, judged: pl.DataFrame) -> dict[str, str]:
    """The hashes that the rest of a topic's log must be asked for, by point."""
    wanted = {}
    points = task.context.pipeline.points
    if points[task.hop.target].kind is PointKind.TOPIC:
        wanted[task.hop.target] = judged.filter(pl.col("verdict") == Verdict.MISSING.value)
    if points[task.hop.source].kind is PointKind.TOPIC:
        wanted[task.hop.source] = judged.filter(pl.col("verdict") == Verdict.UNEXPECTED.value)
    folder = f"{task.context.window.prefix}/{task.hop.slug}/wanted"
    return {
        point: task.context.storage.write_parquet(folder, frame.select(HASH))
        for point, frame in wanted.items()
        if len(frame)
    }


# The answer


def _write(task: BucketTask, known: BucketInput, judged: pl.DataFrame, wanted: Mapping[str, str]) -> BucketAnswer:
    points = task.context.pipeline.points
    findings = explain(
        judged,
        HopContext(
            hop=task.hop.name,
            source_kind=points[task.hop.source].kind,
            target_kind=points[task.hop.target].kind,
            source=known.source,
            target=known.target.unique(subset="place", keep="first", maintain_order=True),
            committed=task.group_committed,
            unconsumed=_unconsumed(task, known.source),
        ),
    )
    folder, storage = f"{task.context.window.prefix}/{task.hop.slug}", task.context.storage
    causes = findings.select("key_hash", "cause")
    verdicts = (
        judged.join(causes, on="key_hash", how="left", maintain_order="left")
        .with_columns(pl.lit(task.hop.name).alias("hop"))
        .select(*VERDICTS)
    )
    beside = judged.filter(~pl.col("in_source"))
    return BucketAnswer(
        hop=task.hop.name,
        bucket=task.bucket,
        counts=rollup.counts(
            judged,
            source_rows=_committed_rows(known.source),
            target_rows=_committed_rows(known.target.unique(subset="place")),  # a store is read twice: by time, by keys
        ),
        digest=rollup.digest(judged),
        expected=_distinct_source_keys(task, known)
        + len(beside.filter(pl.col("verdict").is_in([str(v) for v in GAPS]))),
        without_source=len(beside.filter(pl.col("verdict") == Verdict.DUPLICATE.value)),
        verdicts=storage.write_parquet(f"{folder}/verdicts", verdicts),
        findings=storage.write_parquet(f"{folder}/findings", findings) if len(findings) else None,
        wanted=wanted,
    )


def _unconsumed(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    if task.group_committed is None or "offset" not in source.columns:
        return empty(HASHES)
    return _beyond(source, task.group_committed)


def _committed_rows(frame: pl.DataFrame) -> int:
    return len(frame) if "is_aborted" not in frame.columns else int((~frame["is_aborted"]).sum())


def _distinct_source_keys(task: BucketTask, known: BucketInput) -> int:
    """Counted from the rows of the snapshot and the names handed over, by key text: apart from the kernel's join."""
    rows = known.source.filter(~pl.col("excluded_by").list.contains(task.hop.name))
    if "is_aborted" in rows.columns:
        rows = rows.filter(~pl.col("is_aborted"))
    return int(pl.concat([rows["key"], known.handed_over["key"]]).n_unique())
