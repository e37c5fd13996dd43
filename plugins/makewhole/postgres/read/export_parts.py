"""Plan in which parts a table is read: pieces of about the same work, each by a connection of its own.

Where most of a table is read, by its pages; a partitioned one by those of the partitions that the times leave. Where an
index finds the rows, by their times.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg2 import sql

from makewhole.postgres.read.expressions import regclass_text, table_identifier, time_between, time_condition
from makewhole.postgres.read.relations import has_places
from makewhole.sql import PgConnection, single_value
from makewhole.tables.shape import TableShape, TimeBounds

# Below that a second connection costs more than it saves.
_PAGES_PER_PART = 4_096  # 32 MiB
_ROWS_PER_PART = 250_000


@dataclass(frozen=True, kw_only=True)
class ExportPart:
    """Rows of a table inside its bounds: in a range of pages `[first, last)`, `last` None for the rest, of the
    partition `relation` if it has any; or those with times in `times`, or before `until` with all that belong to the
    bounds whatever their time. Nothing of these: all rows, by any index."""

    first_page: int | None = None
    last_page: int | None = None
    relation: str | None = None
    times: tuple[datetime, datetime] | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """Holds what PostgreSQL would read: by an index or not, of which relations (quoted), how many rows it expects."""

    uses_index: bool
    relations: tuple[str, ...]
    rows: int


def plan_parts(
    session: PgConnection, shape: TableShape, bounds: TimeBounds | None, wanted: int
) -> tuple[ExportPart, ...]:
    """Return the parts, at most `wanted` of a table, and at least one of each partition that is read."""
    if not has_places(session, shape.point):
        return (ExportPart(),)
    scan = _planned(session, shape, bounds)
    if scan.uses_index:
        return _by_times(shape, bounds, min(wanted, scan.rows // _ROWS_PER_PART))
    whole = regclass_text(shape.point)
    has_children = _has_children(session, whole)
    pages = {name: _pages(session, name) for name in (scan.relations if has_children else (whole,))}
    count = min(wanted, sum(pages.values()) // _PAGES_PER_PART)
    if count <= 1:
        return (ExportPart(),)
    return tuple(part if has_children else replace(part, relation=None) for part in _by_pages(pages, count))


def part_condition(shape: TableShape, bounds: TimeBounds | None, part: ExportPart) -> sql.Composable:
    """Return the condition for the rows of a part."""
    point = shape.point
    if part.times is not None and point.time is not None:
        return time_between(point.time, *part.times)
    if bounds is not None and part.until is not None:
        bounds = replace(bounds, end=part.until)
    conditions = [time_condition(point, bounds)]
    if part.relation is not None:
        conditions.append(sql.SQL("t.tableoid = {}::regclass").format(sql.Literal(part.relation)))
    if part.first_page is not None:
        conditions.append(sql.SQL("t.ctid >= {}").format(sql.Literal(f"({part.first_page},0)")))
    if part.last_page is not None:
        conditions.append(sql.SQL("t.ctid < {}").format(sql.Literal(f"({part.last_page},0)")))
    return sql.SQL(" and ").join(conditions)


def _by_pages(pages: Mapping[str, int], count: int) -> Iterator[ExportPart]:
    """Yield ranges of about as many pages each; the last one of a relation is open, as it may have grown."""
    step = -(-sum(pages.values()) // count)
    for relation, number in pages.items():
        pieces = max(1, round(number / step))
        size = -(-number // pieces) or 1
        for at in range(pieces):
            last = (at + 1) * size if at < pieces - 1 else None
            yield ExportPart(first_page=at * size, last_page=last, relation=relation)


def _by_times(shape: TableShape, bounds: TimeBounds | None, count: int) -> tuple[ExportPart, ...]:
    """Return spans of the same length of the bounds' own times; all rows where there are none, or few rows."""
    if bounds is None or bounds.start is None or shape.point.time is None or count <= 1:
        return (ExportPart(),)
    step = (bounds.end - bounds.start) / count
    edges = [bounds.start + at * step for at in range(count)] + [bounds.end]
    spans = [ExportPart(times=(edges[at], edges[at + 1])) for at in range(1, count)]
    return (ExportPart(until=edges[1]), *spans)


def _planned(session: PgConnection, shape: TableShape, bounds: TimeBounds | None) -> _Scan:
    rows = sql.SQL("select 1 from {} t where {}").format(
        table_identifier(shape.point), part_condition(shape, bounds, ExportPart())
    )
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("explain (verbose, format json) {}").format(rows))
        plan = single_value(cursor.fetchall())[0]["Plan"]
    nodes = [node for node in _nodes(plan) if "Relation Name" in node]
    return _Scan(
        uses_index=any(node["Node Type"] != "Seq Scan" for node in nodes) or not nodes,
        relations=tuple(_quoted(node["Schema"], node["Relation Name"]) for node in nodes),
        rows=int(plan["Plan Rows"]),
    )


def _pages(session: PgConnection, relation: str) -> int:
    with session.cursor() as cursor:
        cursor.execute(
            "select pg_relation_size(%s::regclass) / current_setting('block_size')::int",
            (relation,),
        )
        return int(single_value(cursor.fetchall()))


def _has_children(session: PgConnection, relation: str) -> bool:
    """Return whether others have rows of a table: its partitions, or tables that inherit from it."""
    with session.cursor() as cursor:
        cursor.execute("select exists (select from pg_inherits where inhparent = %s::regclass)", (relation,))
        return bool(single_value(cursor.fetchall()))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def _quoted(*names: str) -> str:
    return ".".join('"{}"'.format(name.replace('"', '""')) for name in names)
