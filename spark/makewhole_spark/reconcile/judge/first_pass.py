"""Take the clean keys out of a bucket before it is judged: from a few columns of its files, with no look-up.

What is left, the exceptions, is read whole and goes to the careful kernel.
"""

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.clean_keys import CleanKeys, columns_of, count_keys, find_clean_keys, no_clean_keys
from makewhole.compute.judge.clean_versions import VersionsBefore, columns_of_versions, find_clean_versions
from makewhole.native.arrays import Bools
from makewhole_spark.reconcile.bucket.answer import KeptExceptions
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.index import known_elsewhere, met_before, versions_before
from makewhole_spark.reconcile.judge.look_ups import slice_frame


@dataclass(frozen=True, kw_only=True)
class FirstPass:
    """The clean keys of a bucket, their `number`, `digest` and rows, and the copies of all others in the two slices.

    `narrow` are all copies of the source with a few columns; `known_besides` the hashes of keys of which more is known
    than the slices say, and that matters.
    """

    number: int
    digest: int
    source_rows: int
    target_rows: int
    known_besides: pl.DataFrame
    source: pl.DataFrame
    target: pl.DataFrame
    narrow: pl.DataFrame

    def count_keys(self, hop: str, named: pl.DataFrame) -> int:
        """Count the source's keys that must have a verdict, those of `named` included, from the source alone."""
        return count_keys(self.narrow, hop, named)


def first_pass(task: BucketTask) -> FirstPass:
    """Find the clean keys of a bucket, and read the copies of the others."""
    source, target = task.hop.source, task.hop.target
    of_source = _narrow(task, source, task.source.files)
    if (found := _found_before(task, of_source)) is not None:
        return found
    narrow = of_source, _narrow(task, target, task.target.files)
    known = _known_besides(task, pl.concat(frame.select(HASH) for frame in narrow))
    clean = _find_clean(task, *narrow, known) if _takes_out(task) else no_clean_keys(*narrow)
    return FirstPass(
        number=len(clean.keys),
        digest=rollup.digest_of_matched(clean.keys),
        source_rows=clean.source_rows,
        target_rows=clean.target_rows,
        known_besides=known,
        source=_exceptions(task, source, task.source.files, clean.source_exceptions),
        target=_exceptions(task, target, task.target.files, clean.target_exceptions),
        narrow=of_source,
    )


def keep_exceptions(task: BucketTask, first: FirstPass) -> KeptExceptions | None:
    """Write what the first pass found, for the bucket to be judged again; None where it took out nothing."""
    if not first.number:
        return None
    storage, folder = task.context.storage, f"{task.context.window.prefix}/{task.hop.slug}/exceptions"
    source, target = (storage.write_parquet(folder, frame) for frame in (first.source, first.target))
    return KeptExceptions(
        clean=first.number,
        digest=first.digest,
        source_rows=first.source_rows,
        target_rows=first.target_rows,
        source=source,
        target=target,
    )


def _found_before(task: BucketTask, narrow: pl.DataFrame) -> FirstPass | None:
    """Return what the first pass of the same bucket found before the rest of a log was read; None where that has copies
    of keys that were clean."""
    if task.known_since.kept is None:
        return None
    source, target = (
        slice_frame(task, point, (path,))
        for point, path in (
            (task.hop.source, task.known_since.kept.source),
            (task.hop.target, task.known_since.kept.target),
        )
    )
    in_tails = _in_tails(task).join(source, on=HASH, how="anti")
    if len(narrow.select(HASH).join(in_tails, on=HASH, how="semi")):
        return None
    return FirstPass(
        number=task.known_since.kept.clean,
        digest=task.known_since.kept.digest,
        source_rows=task.known_since.kept.source_rows,
        target_rows=task.known_since.kept.target_rows,
        known_besides=_known_besides(task, pl.concat(frame.select(HASH) for frame in (source, target))),
        source=source,
        target=target,
        narrow=narrow,
    )


def _takes_out(task: BucketTask) -> bool:
    """Return whether keys of this hop can be clean: not where what a truncation took is judged again, where another
    source brings keys to the same target, or where a key may have rows in slices that are not known."""
    is_blind = task.has_slices and task.elsewhere.met_alone is None
    return not (task.elsewhere.truncated or task.elsewhere.other_sources or is_blind)


def _find_clean(task: BucketTask, source: pl.DataFrame, target: pl.DataFrame, known: pl.DataFrame) -> CleanKeys:
    if not task.is_upsert:
        return find_clean_keys(source, target, task.hop.name, known)
    index = task.source.index
    of_source = index.copies if task.is_topic(task.hop.source) else index.versions
    before = VersionsBefore(
        versions_before(task, task.hop.source, of_source, source.select(HASH)),
        versions_before(task, task.hop.target, task.target.index.copies, target.select(HASH)),
    )
    unit = task.context.pipeline.version_unit(task.hop)
    return find_clean_versions(source, target, task.hop.name, known, before, unit)


def _known_besides(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return hashes of keys of which more is known than the two slices say, as far as the slices have them (`keys`):
    copies elsewhere, what waits (whatever was handed over does), what compensation wrote, what earlier windows reported
    or met without its record, or windows before these may have met. Versions that other windows have are left out: keys
    have them day after day."""
    frames = [_in_tails(task), met_before(task, keys), _out_of_time(task)]
    frames += [] if task.is_upsert else [known_elsewhere(task, keys)]
    of_plans = (task.replays, task.source_replays, task.written, task.followed)
    frames += [frame.select(HASH) for frame in (*of_plans, task.waiting_since, task.already_reported)]
    named = () if task.elsewhere.met_alone is None else task.elsewhere.met_alone.named
    frames.append(pl.DataFrame(list(named), schema=HASHES, orient="row"))
    return pl.concat(frames)


def _in_tails(task: BucketTask) -> pl.DataFrame:
    """Return the hashes of the copies that were found in the rest of the logs."""
    files = [path for paths in task.known_since.tails.values() for path in paths]
    found = task.context.storage.read_parquet(files, list(HASH))
    return empty(HASHES) if found is None else found.select(HASH)


def _out_of_time(task: BucketTask) -> pl.DataFrame:
    """Return the hashes of the source's records that are older than the windows reach that say what they met."""
    since = None if task.elsewhere.met_alone is None else task.elsewhere.met_alone.since
    storage, files = task.context.storage, task.source.files
    if since is None or not storage.may_be_before(files, "time", since):
        return empty(HASHES)
    found = storage.read_parquet(files, [*HASH, "time"])
    return empty(HASHES) if found is None else found.filter(_is_before(since)).select(HASH)


def _is_before(moment: datetime) -> pl.Expr:
    return (pl.col("time") < moment).fill_null(True)


def _narrow(task: BucketTask, point: str, files: tuple[str, ...]) -> pl.DataFrame:
    columns = _columns(task, point)
    frame = task.context.storage.read_parquet(files, columns)
    return slice_frame(task, point, ()).select(columns) if frame is None else frame


def _columns(task: BucketTask, point: str) -> list[str]:
    is_topic, is_target = task.is_topic(point), point == task.hop.target
    if task.is_upsert:
        return columns_of_versions(is_topic=is_topic, is_target=is_target)
    return [*columns_of(is_topic=is_topic), *(("partition", "offset") if is_topic and not is_target else ())]


def _exceptions(task: BucketTask, point: str, files: tuple[str, ...], exceptions: Bools) -> pl.DataFrame:
    frame = task.context.storage.read_rows(files, exceptions)
    return slice_frame(task, point, ()) if frame is None else frame
