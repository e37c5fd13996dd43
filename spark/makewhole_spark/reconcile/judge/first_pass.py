"""Take the clean keys out of a bucket before it is judged: from a few columns of its files, with no look-up.

What is left, the exceptions, is read whole and goes to the careful kernel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from makewhole.compute import rollup
from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.clean_keys import CleanKeys, columns_of, find_clean_keys, no_clean_keys
from makewhole.compute.judge.clean_versions import VersionsBefore, columns_of_versions, find_clean_versions
from makewhole.compute.normalise import as_compared, hashed_again
from makewhole.lake.storage import Storage
from makewhole.native.arrays import Bools
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import MetAlone
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.index import files_of_keys, known_elsewhere, maybe_in, versions_before
from makewhole_spark.reconcile.judge.read_copies import slice_frame


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


def first_pass(task: BucketTask) -> FirstPass:
    """Find the clean keys of a bucket, and read the copies of the others."""
    source, target = task.hop.source, task.hop.target
    of_source = _narrow(task, source, task.source.files)
    if (earlier := _found_before(task, of_source)) is not None:
        return earlier
    narrow = of_source, _narrow(task, target, task.target.files)
    known_besides = _known_besides(task, pl.concat(frame.select(HASH) for frame in narrow))
    clean = _find_clean(task, *narrow, known_besides) if _takes_out(task) else no_clean_keys(*narrow)
    return FirstPass(
        number=len(clean.keys),
        digest=rollup.digest_of_matched(clean.keys),
        source_rows=clean.source_rows,
        target_rows=clean.target_rows,
        known_besides=known_besides,
        source=_exceptions(task.context, source, task.source.files, clean.source_exceptions),
        target=_exceptions(task.context, target, task.target.files, clean.target_exceptions),
        narrow=of_source,
    )


def _found_before(task: BucketTask, narrow: pl.DataFrame) -> FirstPass | None:
    """Return what the first pass of the first round found; None where the rest of a log has copies of keys that were
    clean."""
    kept, hop = task.known_since.kept, task.hop
    if kept is None:
        return None
    source = slice_frame(task.context, hop.source, (kept.source,))
    target = slice_frame(task.context, hop.target, (kept.target,))
    in_tails = _in_tails(task.context.storage, task.known_since.tails).join(source, on=HASH, how="anti")
    if len(narrow.select(HASH).join(in_tails, on=HASH, how="semi")):
        return None
    return FirstPass(
        number=kept.clean,
        digest=kept.digest,
        source_rows=kept.source_rows,
        target_rows=kept.target_rows,
        known_besides=_known_besides(task, pl.concat(frame.select(HASH) for frame in (source, target))),
        source=source,
        target=target,
        narrow=narrow,
    )


def _takes_out(task: BucketTask) -> bool:
    """Return whether keys of this hop can be clean: not where a truncation took what the target had, where another
    source brings keys to the same target, where a key may have rows in slices that are not known, or where a row is
    made of many records."""
    is_blind = task.has_slices and task.elsewhere.met_alone is None
    return task.hop.group is None and not (task.elsewhere.truncated or task.elsewhere.other_sources or is_blind)


def _find_clean(task: BucketTask, source: pl.DataFrame, target: pl.DataFrame, known_besides: pl.DataFrame) -> CleanKeys:
    if not task.is_upsert:
        return find_clean_keys(source, target, task.hop.name, known_besides)
    index = task.source.index
    of_source = index.copies if task.is_topic(task.hop.source) else index.versions
    before = VersionsBefore(
        versions_before(task.context, task.hop.source, of_source, source.select(HASH)),
        versions_before(task.context, task.hop.target, task.target.index.copies, target.select(HASH)),
    )
    unit = task.context.pipeline.version_unit(task.hop)
    return find_clean_versions(source, target, task.hop.name, known_besides, before, unit)


def _known_besides(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return hashes of keys of which more is known than the two slices say, as far as the slices have them (`keys`):
    copies elsewhere, what waits (whatever was handed over does), what compensation wrote, what earlier windows reported
    or met without its record, or windows before these may have met. Versions that other windows have are left out: keys
    have them day after day."""
    storage, met_alone = task.context.storage, task.elsewhere.met_alone or MetAlone()
    frames = [_in_tails(storage, task.known_since.tails), maybe_in(storage, files_of_keys(met_alone.files), keys)]
    frames.append(_out_of_time(storage, task.source.files, met_alone.since))
    frames += [] if task.is_upsert else [known_elsewhere(task, keys)]
    of_plans = (task.replays, task.source_replays, task.written, task.followed)
    frames += [frame.select(HASH) for frame in (*of_plans, task.waiting_since, task.already_reported)]
    frames.append(pl.DataFrame(list(met_alone.named), schema=HASHES, orient="row"))
    return pl.concat(frames)


def _in_tails(storage: Storage, tails: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Return the hashes of the copies that were found in the rest of the logs."""
    hashes = storage.read_parquet([path for paths in tails.values() for path in paths], list(HASH))
    return empty(HASHES) if hashes is None else hashes.select(HASH)


def _out_of_time(storage: Storage, files: Sequence[str], since: datetime | None) -> pl.DataFrame:
    """Return the hashes of the source's records that are older than the windows reach that say what they met
    (`since`)."""
    if since is None or not storage.may_be_before(files, "time", since):
        return empty(HASHES)
    records = storage.read_parquet(files, [*HASH, "time"])
    is_before = (pl.col("time") < since).fill_null(True)
    return empty(HASHES) if records is None else records.filter(is_before).select(HASH)


def _narrow(task: BucketTask, point: str, files: Sequence[str]) -> pl.DataFrame:
    columns = _columns(task, point)
    frame = task.context.storage.read_parquet(files, [*columns, *hashed_again(task.context.pipeline, point)])
    frame = slice_frame(task.context, point) if frame is None else as_compared(task.context.pipeline, point, frame)
    return frame.select(columns)


def _columns(task: BucketTask, point: str) -> list[str]:
    is_topic, is_target = task.is_topic(point), point == task.hop.target
    if task.is_upsert:
        return columns_of_versions(is_topic=is_topic, is_target=is_target)
    return [*columns_of(is_topic=is_topic), *(("partition", "offset") if is_topic and not is_target else ())]


def _exceptions(context: WindowContext, point: str, files: Sequence[str], exceptions: Bools) -> pl.DataFrame:
    frame = context.storage.read_rows(files, exceptions)
    return slice_frame(context, point) if frame is None else as_compared(context.pipeline, point, frame)
