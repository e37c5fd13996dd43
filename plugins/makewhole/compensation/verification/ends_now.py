"""Read what the two ends of a hop have of some keys: rows as they are now, records as far as they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compensation.verification.agreement import EndCopy
from makewhole.compensation.verification.committed_since import CopiesByKey, StartOffsets, copies_since
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.compute.frames import HASHES
from makewhole.compute.indexed_keys.former_readings import as_read_now, numbered_number
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER, filter_places, with_filter_of
from makewhole.compute.indexed_keys.key_runs import first_and_latest_copies, first_copies, passing_rows
from makewhole.compute.keys import hash_hex, split_hex
from makewhole.journal.database import connect
from makewhole.journal.key_index.runs import IndexedTopic, readable_runs
from makewhole.key_index.files import IndexFile, rows_of_keys
from makewhole.model.hops import Hop, Semantics
from makewhole.model.places.compared_columns import compared_at
from makewhole.model.points import can_look_up
from makewhole.window.context import WindowContext

CopiesAtEnd = Mapping[str, Sequence[EndCopy]]
"""Key hash → its copies at one end of a hop."""
_LAST = 2**31
"""The place of records that no window of the index has, behind all that have a window."""


@dataclass(frozen=True, kw_only=True)
class EndsNow:
    """Reads the ends of hops for a window. Records of topics are those that the key index has up to this window, and at
    a hop's target also those that came since compensation began."""

    context: WindowContext
    since: StartOffsets
    _files: dict[str, tuple[IndexFile, ...]] = field(default_factory=dict)

    def copies(self, hop: Hop, point: str, keys: Mapping[str, str]) -> CopiesAtEnd:
        """Return what one end of a hop (`point`) has of keys (by their hashes), as far as the hop brings it, or keeps
        it out."""
        context = self.context.as_compared_on(hop)
        if can_look_up(context.pipeline.points[point]):
            return _of_rows(hop, keys, read_rows(context, point, sorted(keys.values())))
        known = self._of_index(hop, point, keys)
        if point == hop.target:
            with copies_since(context, point, {*keys.values()}, self.since) as since:
                _add_since(known, hop, keys, since)
        return known

    def _of_index(self, hop: Hop, point: str, keys: Mapping[str, str]) -> dict[str, list[EndCopy]]:
        context = self.context.as_compared_on(hop)
        hashes = pl.DataFrame([split_hex(key_hash) for key_hash in keys], schema=HASHES, orient="row")
        rows = rows_of_keys(self.context.storage, self._index(point), hashes)
        is_upsert = hop.semantics is Semantics.UPSERT
        rows = as_read_now(rows, compared_at(context.pipeline, point), is_upsert=is_upsert)
        if point == hop.source:
            pipeline = self.context.pipeline
            rows = with_filter_of(rows, hop, filter_places(pipeline, hop), pipeline.filter_types)
        rows = rows if is_upsert or point != hop.source else passing_rows(rows, hop.name)
        known: dict[str, list[EndCopy]] = {}
        for (window,), part in rows.partition_by("window", as_dict=True).items():
            of_kind = first_and_latest_copies if is_upsert else first_copies
            copies = of_kind(part, is_later=False).with_columns(hash_hex())
            for copy in copies.iter_rows(named=True):
                known.setdefault(copy["key_hash"], []).append(_of_record(hop, int(window), copy))
        return known

    def _index(self, point: str) -> tuple[IndexFile, ...]:
        """Return the files of the key index with the windows up to this one."""
        if point not in self._files:
            window = self.context.window
            with connect() as journal:
                runs = readable_runs(journal, IndexedTopic(pipeline=window.pipeline, point=point))
            held = ((run, tuple(at for at in run.windows if at <= window.number)) for run in runs)
            number = numbered_number(self.context.pipeline.points[point].version_place)
            self._files[point] = tuple(
                IndexFile(path=path, windows=windows, numbered_by=number)
                for run, windows in held
                if windows
                for path in run.files.values()
            )
        return self._files[point]


def _of_rows(hop: Hop, keys: Mapping[str, str], rows: CopiesByKey) -> dict[str, list[EndCopy]]:
    return {
        key_hash: [
            EndCopy(row_hash=row["row_hash"], version=row["version"], passes=_passes(hop, row)) for row in rows[key]
        ]
        for key_hash, key in keys.items()
        if key in rows
    }


def _add_since(known: dict[str, list[EndCopy]], hop: Hop, keys: Mapping[str, str], since: CopiesByKey) -> None:
    for key_hash, key in keys.items():
        for copy in since.get(key, ()):
            place = f"{copy['partition']}:{copy['offset']}"
            known.setdefault(key_hash, []).append(_of_record(hop, _LAST, {**copy, "place": place}))


def _of_record(hop: Hop, window: int, copy: Mapping[str, Any]) -> EndCopy:
    partition, offset = (int(part) for part in copy["place"].split(":"))
    return EndCopy(
        row_hash=copy["row_hash"],
        version=copy["version"],
        is_tombstone=bool(copy["is_tombstone"]),
        passes=_passes(hop, copy),
        partition=partition,
        order=(window, offset),
    )


def _passes(hop: Hop, copy: Mapping[str, Any]) -> bool | None:
    excluded = copy["excluded_by"] or ()
    return None if UNKNOWN_FILTER in excluded else hop.name not in excluded
