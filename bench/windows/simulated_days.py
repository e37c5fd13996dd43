"""Simulate the windows of days that were not judged: rows in the journal like those of a judged day, and a run of the
key index of as many keys, merged day by day as the housekeeping does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl

from bench.windows.service import PIPELINE, Service
from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import STORED
from makewhole.journal.database import connect
from makewhole.journal.key_index import runs
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, standing_runs
from makewhole.key_index.files import write_index_file
from makewhole.key_index.status import TopicIndex, compact
from makewhole.lake.storage import Storage
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_TOPIC = "orders"
_SEED = 20260101
_COPIES = """
create temporary table day on commit drop as
    select number, (number - %(like)s) * interval '1 day' as shift
    from generate_series(%(first)s, %(last)s) as number;
insert into makewhole.window (pipeline, number, revision, start_time, end_time, opened_at, state, request, plan_only,
                              configuration, closed_at)
    select pipeline, day.number, 1, start_time + shift, end_time + shift, opened_at, 'certified',
           request || '.' || day.number, plan_only, configuration, closed_at
    from makewhole.window as known, day where (known.number, known.revision) = (%(like)s, %(revision)s);
insert into makewhole.window_range (pipeline, number, lane, offsets, lo, hi, leader_epochs)
    select pipeline, day.number, lane, int8range(hi, hi), hi, hi, leader_epochs
    from makewhole.window_range as known, day where known.number = %(like)s;
insert into makewhole.observation (pipeline, point, observed_at, topic_id, stable_offsets, pg_snapshot, place)
    select pipeline, point, observed_at - (%(last)s - day.number + 1) * interval '1 minute', topic_id, stable_offsets,
           pg_snapshot, place
    from (select distinct on (pipeline, point) * from makewhole.observation order by pipeline, point, observed_at)
        as known, day;
insert into makewhole.snapshot
    select pipeline, day.number, 1, point, manifest, committed_at
    from makewhole.snapshot as known, day where (known.number, known.revision) = (%(like)s, %(revision)s);
insert into makewhole.hop_result
    select pipeline, day.number, 1, hop, stage, counts, digest, files, committed_at
    from makewhole.hop_result as known, day where (known.number, known.revision) = (%(like)s, %(revision)s);
insert into makewhole.gate_report
    select pipeline, day.number, 1, stage, answer, planned, evaluated, failures, document, committed_at
    from makewhole.gate_report as known, day where (known.number, known.revision) = (%(like)s, %(revision)s);
insert into makewhole.slice_count
    select pipeline, point, day.number, day.number, 1, source,
           case when day.number = any (%(with_rows)s) then rows else 0 end, counted_at
    from makewhole.slice_count as known, day
    where (known.slice, known.number, known.revision) = (%(like)s, %(like)s, %(revision)s);
"""


@dataclass(frozen=True, kw_only=True)
class SimulatedDays:
    """The days after a judged window `like` to day `last`; of those `with_rows` the tables have rows."""

    like: Window
    last: int
    with_rows: tuple[int, ...]

    def write(self, service: Service) -> TopicIndex:
        """Write them; return what the key index is made of after the last day."""
        storage = Storage(root=str(Path(service.folder) / "storage"))
        with connect(service.journal) as journal:
            self._copy_rows(journal)
            kind = _rows_of(journal, storage, self.like)
            chance = np.random.default_rng(_SEED)
            for day in range(self.like.number + 1, self.last + 1):
                index = _write_run(journal, storage, replace(self.like, number=day, revision=1), kind, chance)
        return index

    def _copy_rows(self, journal: PgConnection) -> None:
        with journal.cursor() as cursor:
            cursor.execute(
                _COPIES,
                {
                    "like": self.like.number,
                    "revision": self.like.revision,
                    "first": self.like.number + 1,
                    "last": self.last,
                    "with_rows": list(self.with_rows),
                },
            )
        journal.commit()


def _rows_of(journal: PgConnection, storage: Storage, window: Window) -> Mapping[str, pl.DataFrame]:
    """Return the rows of a window's run of the key index, by bucket."""
    runs = standing_runs(journal, IndexedTopic(pipeline=PIPELINE, point=_TOPIC))
    run: IndexedRun = next(run for run in runs if run.windows == (window.number,))
    rows_by_bucket = {bucket: storage.read_parquet([path], list(STORED)) for bucket, path in run.files.items()}
    return {bucket: rows for bucket, rows in rows_by_bucket.items() if rows is not None}


def _write_run(
    journal: PgConnection,
    storage: Storage,
    window: Window,
    kind: Mapping[str, pl.DataFrame],
    chance: np.random.Generator,
) -> TopicIndex:
    """Write a window's run with rows of this kind and keys by chance, and merge as far as there is something to."""
    files = {}
    for bucket, rows in kind.items():
        folder = f"{PIPELINE}/index/{_TOPIC}/window={window.number}/bucket={bucket}"
        files[bucket] = write_index_file(storage, folder, [_with_other_keys(rows, window.number, len(kind), chance)])
    runs.put_key_run(journal, window, _TOPIC, files, sum(len(rows) for rows in kind.values()))
    journal.commit()
    [done] = compact(journal, storage, PIPELINE, grace=timedelta(0))
    return done.index


def _with_other_keys(rows: pl.DataFrame, window: int, buckets: int, chance: np.random.Generator) -> pl.DataFrame:
    """Return rows with other hashes that fall into the same bucket, in their order."""
    high, low = chance.integers(0, 2**64, (2, len(rows)), dtype=np.uint64)
    own = rows["key_hi"].to_numpy() % np.uint64(buckets)
    high = np.minimum(high, np.uint64(2**64 - 1) - np.uint64(buckets)) // np.uint64(buckets) * np.uint64(buckets) + own
    changed = [pl.Series("key_hi", high), pl.Series("key_lo", low), pl.lit(window, dtype=pl.Int32).alias("window")]
    return rows.with_columns(changed).sort(HASH)
