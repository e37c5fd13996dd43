"""Choose which records of a bucket are published: the driver makes the tasks, and a task writes the positions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.indexed_keys.former_readings import as_read_now
from makewhole.compute.judge.survivors import COPIES, DOUBTED, ChosenSurvivors, LeftOut, choose_first, choose_latest
from makewhole.compute.keys import hashes_of_hex
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding, count_left_out
from makewhole.key_index.files import IndexFile, maybe_known, rows_of_keys
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.places.compared_columns import compared_at
from makewhole.model.verdict import Cause, Verdict
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.task import BucketEnd
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.point_facts import PointFacts

_DOUBTS: Mapping[Verdict, LeftOut] = {
    Verdict.CONFLICT: LeftOut.CONFLICT,
    Verdict.UNDECIDABLE: LeftOut.UNDECIDABLE,
    Verdict.UNEXPECTED: LeftOut.UNVERIFIED,
    Verdict.MISMATCHED: LeftOut.UNVERIFIED,
}
_OF_TARGET_ALONE = (Verdict.UNEXPECTED, Verdict.MISMATCHED)


@dataclass(frozen=True, kw_only=True)
class ChoiceTask:
    """A bucket of a topic point: its copies, what the windows before had of their keys, and the keys that findings of
    the window keep out. What is written goes below `folder`. `is_revision`: something of the window is published."""

    context: WindowContext
    point: str
    bucket: str
    end: BucketEnd
    doubted: BucketRows
    folder: str
    is_upsert: bool
    is_revision: bool


@dataclass(frozen=True, kw_only=True)
class ChosenRecords:
    """Choice made in a bucket: files of positions by partition with their rows, and how much was left out, why.
    `resent_file` has the keys of a revision that belong to earlier windows."""

    files: tuple[tuple[int, str, int], ...]
    resent_file: str | None
    left_out_file: str | None
    left_out: Mapping[str, int]
    resent_keys: int
    resent_records: int


def choice_tasks(neighbours: NeighbouringWindows, point: str, folder: str, *, is_revision: bool) -> list[ChoiceTask]:
    """Return the tasks that choose the records of a point."""
    context = neighbours.context
    hop = next(hop for hop in context.pipeline.hops if point in (hop.source, hop.target))
    facts = PointFacts.of_source(neighbours, hop) if point == hop.source else PointFacts.of_target(neighbours, hop, ())
    doubted = neighbours.by_bucket(f"{folder}/doubted", _doubted(neighbours, point), DOUBTED)
    return [
        ChoiceTask(
            context=context,
            point=point,
            bucket=bucket,
            end=facts.in_bucket(bucket),
            doubted=doubted.in_bucket(bucket),
            folder=f"{context.window.prefix}/{folder}",
            is_upsert=hop.semantics is Semantics.UPSERT,
            is_revision=is_revision,
        )
        for bucket in neighbours.own_buckets(neighbours.manifests[point]["files"])
    ]


def _doubted(neighbours: NeighbouringWindows, point: str) -> Iterator[pl.DataFrame]:
    """Yield the keys that findings at a point keep out, whatever became of them: a repair writes another record, and
    leaves this one as it is."""
    journal, context = neighbours.journal, neighbours.context
    hops = {hop.name: hop for hop in context.pipeline.hops if point in (hop.source, hop.target)}
    for (name, verdict), keys in count_left_out(journal, context.window).items():
        if name in hops and _applies(hops[name], verdict, point):
            raise RefusedError(
                f"{context.window.label}: {point} is not published: {keys} keys of {name} are {verdict.value}, and the "
                "journal does not have all of them by name. Find their common cause, and run the window again"
            )
    for batch in StoredFindings(window=context.window).batches(journal):
        rows = [row for judged in batch if (row := _doubt(hops, judged, point)) is not None]
        if rows:
            frame = pl.DataFrame(
                rows, schema={"key_hash": pl.String, "why": pl.String, "cause": pl.String}, orient="row"
            )
            yield frame.select(*hashes_of_hex(), "why", "cause")


def _doubt(hops: Mapping[str, Hop], judged: JudgedFinding, point: str) -> tuple[str, str, str] | None:
    finding = judged.finding
    hop = hops.get(finding.hop)
    if hop is None or not _applies(hop, finding.verdict, point):
        return None
    if finding.cause is Cause.TARGET_CONTRADICTS and hop.target != point:
        return None  # the store holds the key twice, and the record is what it is
    return finding.key_hash, _DOUBTS[finding.verdict].value, finding.cause.value


def _applies(hop: Hop, verdict: Verdict, point: str) -> bool:
    return verdict in _DOUBTS and (hop.target == point or verdict not in _OF_TARGET_ALONE)


def choose_records(task: ChoiceTask) -> ChosenRecords:
    """Choose the records of a bucket, and write their positions, a file for each partition."""
    chosen = _choose(task)
    storage, files = task.context.storage, []
    for (partition,), rows in chosen.survivors.sort("partition", "offset").group_by("partition", maintain_order=True):
        path = storage.write_parquet(f"{task.folder}/chosen/{task.bucket}", rows)
        files.append((int(str(partition)), path, len(rows)))
    why = chosen.left_out.group_by("why").len().iter_rows()
    left_out = dict(sorted((str(name), int(keys)) for name, keys in why))
    has_any = len(chosen.left_out) > 0
    may_stay = task.is_revision and not task.is_upsert and len(chosen.resent) > 0
    return ChosenRecords(
        files=tuple(files),
        resent_file=storage.write_parquet(f"{task.folder}/resent", chosen.resent) if may_stay else None,
        left_out_file=storage.write_parquet(f"{task.folder}/left_out", chosen.left_out) if has_any else None,
        left_out=left_out,
        resent_keys=chosen.resent_keys,
        resent_records=chosen.resent_records,
    )


def _choose(task: ChoiceTask) -> ChosenSurvivors:
    context, storage = task.context, task.context.storage
    copies = storage.read_parquet(task.end.files, list(COPIES))
    assert copies is not None
    doubted = task.doubted.read(storage)
    known = _known_before(task, copies.select(HASH).unique())
    if task.is_upsert:
        return choose_latest(copies, known, doubted)
    return choose_first(copies, task.end.replays.read(context.storage), known, doubted)


def _known_before(task: ChoiceTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return what the windows before this one had of some keys, as a run of the key index."""
    storage, index = task.context.storage, task.end.index.copies
    files: Sequence[IndexFile] = (*index.former, *index.earlier)
    maybe = keys.filter(pl.Series(maybe_known(storage, files, keys), dtype=pl.Boolean)) if files else empty(HASHES)
    rows = rows_of_keys(storage, files, maybe)
    return as_read_now(rows, compared_at(task.context.pipeline, task.point), is_upsert=task.is_upsert)
