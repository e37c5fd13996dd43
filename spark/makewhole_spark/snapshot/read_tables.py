"""Take the snapshots of tables: read each under one view of its data, unless the view shows that its rows are those
that an earlier revision has read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from makewhole.journal.results.snapshot_manifests import KEYS_BY_PARTS, MARK
from makewhole.model.errors import TransientError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.window import CountedSlice
from makewhole.tables.reading import ReadPlan, TableView, UnreadableFile
from makewhole.tables.shape import TimeBounds
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import carry_released
from makewhole_spark.snapshot.census import own_slice
from makewhole_spark.snapshot.read_census import CensusPiece, read_table
from makewhole_spark.snapshot.read_piece import PieceRead, TablePiece, sum_of_known
from makewhole_spark.snapshot.reading import Reading, TakenSnapshot, manifest_of
from makewhole_spark.snapshot.reuse.decide import SAME_ROWS, as_read
from makewhole_spark.snapshot.table_bounds import (
    TableBounds,
    counted_wholly,
    left_over_files,
    table_bounds,
    unreadable_files,
)
from makewhole_spark.snapshot.value_census import StoreCensus, store_census


@dataclass(frozen=True, kw_only=True)
class _TableRead:
    """Rows read of a table under its view. `looked` are the rows of known keys, by hop; `entries` of the manifest
    say by what a later revision shows that the rows are the same, and whose files these are."""

    point: TablePoint
    bounds: TableBounds
    plan: ReadPlan
    known: StoreCensus
    rows: Sequence[PieceRead]
    looked: Sequence[tuple[str, PieceRead]]
    own: Sequence[CountedSlice]
    entries: Mapping[str, Any]

    def taken(self, reading: Reading, taken_at: datetime) -> TakenSnapshot:
        """Return the snapshot."""
        reads = [*self.rows, *(answer for _, answer in self.looked)]
        manifest = manifest_of(reading, self.point, taken_at, reads, self.plan)
        census = self.bounds.census
        counted = counted_wholly(replace(census, counted=(*self.own, *census.counted)), self.plan)
        left_over = left_over_files(self.point, self.plan, taken_at, reading.context.pipeline.pending_max_age)
        of_files = [*unreadable_files(self.point, self.plan), *left_over]
        return TakenSnapshot(
            manifest={**manifest, **self.entries, **self.bounds.manifest(), **self.known.manifest(self.looked)},
            incidents=[*counted.incidents, *self.known.incidents, *of_files],
            counted=counted.counted,
        )


def read_tables(
    reading: Reading, points: Sequence[TablePoint], manifests: Mapping[str, Mapping[str, Any]]
) -> dict[str, TakenSnapshot]:
    """Read tables, each under one exported snapshot; `manifests` name the keys by which stores are read.

    What readers find of files that do not decode is known only when all is read: the views leave them out, and all is
    read again, so that no row of them is in a snapshot.
    """
    with ExitStack() as stack:
        views = {
            point.name: stack.enter_context(reading.context.tables(point).hold_view(reading.context.table_shape(point)))
            for point in points
        }
        while True:
            taken, unreadable = _read_once(reading, points, manifests, views)
            if not unreadable:
                return taken
            for name, files in unreadable.items():
                known = {file.path for file in views[name].plan(None, 1).unreadable}
                if known.issuperset(file.path for file in files):
                    raise TransientError(f"{files[0].path} of {name} was read though it was left out; read again")
                views[name].leave_out(files)


def _read_once(
    reading: Reading,
    points: Sequence[TablePoint],
    manifests: Mapping[str, Mapping[str, Any]],
    views: Mapping[str, TableView],
) -> tuple[dict[str, TakenSnapshot], dict[str, list[UnreadableFile]]]:
    """Read tables under their views; return the snapshots, and the files that did not decode, by point."""
    journal, context = reading.journal, reading.context
    bounds = {point.name: table_bounds(journal, context, point, views[point.name]) for point in points}
    plans, of_keys = dict[str, ReadPlan](), dict[str, ReadPlan]()
    for point in points:
        is_by_keys = views[point.name].reads_keys_by_parts and bool(hops_read_by_keys(context, point))
        plans[point.name], of_keys[point.name] = plans_of_one_view(
            views[point.name], bounds[point.name].bounds, reading.parallelism, is_by_keys=is_by_keys
        )
    by_times = [point for point in points if not hops_read_by_keys(context, point)]
    reused = {name: as_read(snapshot) for name, snapshot in reading.reuse.tables(by_times, views, bounds).items()}
    left = [point for point in by_times if point.name not in reused]
    marks = {point.name: views[point.name].mark(bounds[point.name].bounds) for point in left}
    pieces = [
        piece
        for point in points
        if point.name not in reused
        for piece in _table_pieces(
            reading,
            point,
            (plans[point.name], of_keys[point.name]),
            views[point.name],
            bounds[point.name].bounds,
            manifests,
        )
    ]
    known = {point.name: store_census(journal, views[point.name], context, point, manifests) for point in points}
    looks = [piece for point in points for piece in _census_pieces(reading, known[point.name], plans[point.name])]
    taken_at = datetime.now(UTC)
    both: list[TablePiece | CensusPiece] = [*pieces, *looks]
    answers = list(zip(both, carry_released(reading.carrier, journal, both, read_table), strict=True))
    unreadable: dict[str, list[UnreadableFile]] = {}
    for piece, answer in answers:
        if answer.unreadable:
            unreadable.setdefault(piece.point.name, []).extend(answer.unreadable)
    if unreadable:
        return {}, unreadable
    read = list[_TableRead]()
    for point in points:
        name, own = point.name, [(piece, answer) for piece, answer in answers if piece.point.name == point.name]
        by_piece = [(piece, answer) for piece, answer in own if isinstance(piece, TablePiece)]
        within = [reused[name]] if name in reused else [reply for piece, reply in by_piece if piece.bounds is not None]
        rows = [reused[name]] if name in reused else [answer for _, answer in by_piece]
        is_same = SAME_ROWS if name in reused else None
        mark = reading.reuse.earlier[name].manifest[MARK] if name in reused else _mark(marks.get(name), rows, within)
        read.append(
            _TableRead(
                point=point,
                bounds=bounds[name],
                plan=plans[name],
                known=known[name],
                rows=rows,
                looked=[(piece.hop.name, answer) for piece, answer in own if isinstance(piece, CensusPiece)],
                own=_own_slice(context, point, views[name], within),
                entries={
                    **({MARK: mark} if mark else {}),
                    **({KEYS_BY_PARTS: True} if views[name].reads_keys_by_parts else {}),
                    **reading.reuse.entry(name, is_same),
                },
            )
        )
    return {table.point.name: table.taken(reading, taken_at) for table in read}, {}


def plans_of_one_view(
    view: TableView, bounds: TimeBounds | None, parts: int, *, is_by_keys: bool
) -> tuple[ReadPlan, ReadPlan]:
    """Return the plans of the rows inside the bounds, and of the rows of keys, which may lie outside them. The second
    is the first one again where no rows are read by keys.

    What the second finds to be gone the first leaves out, too: what was not read must not look as if it had been seen.
    """
    plan = view.plan(bounds, parts)
    if bounds is None or not is_by_keys:
        return plan, plan
    while (of_keys := view.plan(None, parts)).view != plan.view:
        plan = view.plan(bounds, parts)
    return plan, of_keys


def _mark(table: Any, rows: Sequence[PieceRead], within: Sequence[PieceRead]) -> dict[str, Any] | None:
    """Return the entry by which a later revision shows that rows are the same; None where nothing would show it."""
    if table is None:
        return None
    in_slice = sum_of_known([read.rows_in_slice for read in within])
    return {"table": table, "rows": sum(read.rows_counted or 0 for read in rows), "in_slice": in_slice}


def _own_slice(
    context: WindowContext, point: TablePoint, view: TableView, reads: Sequence[PieceRead]
) -> Sequence[CountedSlice]:
    """Return the window's own slice of a table with the number of its rows, where it has times. `reads`: of its times.

    As they were read; they are counted in the table where that does not tell: rows that are erased in place are not
    read, and count.
    """
    if point.time is None:
        return ()
    own, has_erased = own_slice(context.window), point.erased is not None and point.erased.column is not None
    rows = None if has_erased else sum_of_known([read.rows_in_slice for read in reads])
    if rows is None:
        rows = view.count_rows([own])[own.window]
    return [CountedSlice(slice=own, rows=rows)]


def _table_pieces(
    reading: Reading,
    point: TablePoint,
    plans: tuple[ReadPlan, ReadPlan],
    view: TableView,
    bounds: TimeBounds | None,
    manifests: Mapping[str, Mapping[str, Any]],
) -> Iterator[TablePiece]:
    parallelism, (plan, of_keys) = reading.parallelism, plans
    piece = TablePiece(
        context=reading.context, point=point, bucket_count=reading.buckets, view=plan.view, bounds=bounds
    )
    if bounds is not None or point.kind is PointKind.LEDGER:
        for part in plan.parts:
            yield replace(piece, part=part)
    for hop in hops_read_by_keys(reading.context, point):
        files = manifests[hop.source]["files"]
        by_keys = replace(piece, bounds=None, source=hop.source, keys_of=files)
        if view.reads_keys_by_parts:
            yield from (replace(by_keys, buckets=tuple(files), part=part) for part in of_keys.parts)
            continue
        for at in range(parallelism):
            yield replace(by_keys, buckets=tuple(sorted(files))[at::parallelism])


def _census_pieces(reading: Reading, known: StoreCensus, plan: ReadPlan) -> Iterator[CensusPiece]:
    """Yield the pieces in which rows of known keys are looked at: of each hop as many as run at once."""
    for look in known.looks:
        for at in range(min(reading.parallelism, len(look.shares))):
            yield CensusPiece(
                context=reading.context,
                point=known.point,
                hop=look.hop,
                bucket_count=reading.buckets,
                view=plan.view,
                shares=look.shares[at :: reading.parallelism],
            )


def hops_read_by_keys(context: WindowContext, point: TablePoint) -> list[Hop]:
    """Return the hops whose source's keys a table is read by.

    By its times every row of an event is read once, in one window or another; versions leave their slices.
    """
    return [
        hop
        for hop in context.pipeline.hops
        if hop.target == point.name and (point.time is None or hop.semantics is Semantics.UPSERT)
    ]
