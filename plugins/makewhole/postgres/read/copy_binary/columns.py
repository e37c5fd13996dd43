"""Choose how each column of an export is sent: as it is stored, where we render it to the same text, or as text.

The texts are those of `expressions.select_list`, byte by byte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from psycopg2 import sql

from makewhole.compute.canonical import decimal_scale
from makewhole.model.points import KeyType, TablePoint
from makewhole.postgres.canonical import canonical_expression
from makewhole.postgres.key_columns import kinds_of
from makewhole.postgres.read.copy_binary import render
from makewhole.postgres.read.copy_binary.render import Rule
from makewhole.postgres.read.expressions import excluded_by, key_expression, microseconds, place, regclass_text
from makewhole.postgres.version_columns import version_text
from makewhole.sql import PgConnection, statements_of
from makewhole.tables.description import INTEGERS, bare
from makewhole.tables.shape import TableShape

_MOMENTS = ("timestamp with time zone", "timestamp without time zone")
_TEXTS = ("text", "character varying")
_MOST_FRACTION_DIGITS = 1_000
_NUMBER = Rule(render.NUMBER)


class FieldUse(StrEnum):
    """The use of the fields of a column."""

    TEXT = "the text that was sent"
    RENDERED = "the text of a value"
    NUMBER = "a number"
    TABLE = "the id of the table that the row lies in"


@dataclass(frozen=True, kw_only=True)
class SentColumn:
    """A column of an export: what is selected, and what its fields are read as, by a rule of `render` if need be."""

    name: str
    selected: sql.Composable
    use: FieldUse = FieldUse.TEXT
    rule: Rule = _NUMBER


def sent_columns(shape: TableShape, types: Mapping[str, str], *, is_plain: bool) -> list[SentColumn]:
    """Return the columns to send; none for a time, a version or a filter that the table has not.

    `types` are those of the table's columns. `is_plain`: all rows lie in the table itself.
    """
    point = shape.point
    columns = [_key(point, types), *_places(point, is_plain=is_plain)]
    if point.time is not None:
        is_moment = bare(types[point.time]) in _MOMENTS
        selected = _column(point.time) if is_moment else microseconds(point.time)
        kind = render.TIME if is_moment else render.NUMBER
        columns.append(SentColumn(name="time_us", selected=selected, use=FieldUse.NUMBER, rule=Rule(kind)))
    if point.version is not None:
        columns.append(_version(point.version, types[point.version]))
    columns += [_compared(name, declared, types[name]) for name, declared in shape.compare.items()]
    if any(shape.filters.values()):
        columns.append(SentColumn(name="excluded_by", selected=excluded_by(shape.filters, types)))
    return columns


def plain_table(session: PgConnection, point: TablePoint) -> int | None:
    """Return the id of a table without partitions and heirs; None for any other."""
    rows = statements_of("export")(session, "plain_table", table=regclass_text(point))
    return next((int(oid) for (oid,) in rows), None)


def _column(name: str) -> sql.Composable:
    return sql.SQL("t.{}").format(sql.Identifier(name))


def _places(point: TablePoint, *, is_plain: bool) -> Sequence[SentColumn]:
    if not is_plain:
        return [SentColumn(name="place", selected=place(point))]
    ctid = SentColumn(name="place", selected=sql.SQL("t.ctid"), use=FieldUse.RENDERED, rule=Rule(render.PLACE))
    return [ctid, SentColumn(name="table", selected=sql.SQL("t.tableoid"), use=FieldUse.TABLE)]


def _version(name: str, column_type: str) -> SentColumn:
    if bare(column_type) in INTEGERS:
        return SentColumn(name="version", selected=_column(name), use=FieldUse.NUMBER)
    return SentColumn(name="version", selected=version_text(_column(name), column_type))


def _key(point: TablePoint, types: Mapping[str, str]) -> SentColumn:
    if len(point.key) == 1:
        (name,), (kind,) = point.key, kinds_of(point.key_layout, 1)
        if (native := _native_key(name, bare(types[name]), kind)) is not None:
            return native
    return SentColumn(name="key", selected=key_expression(point, types))


def _native_key(name: str, column_type: str, kind: KeyType) -> SentColumn | None:
    if kind is KeyType.STRING:
        return _as_stored("key", name, column_type)
    if kind in (KeyType.BIGINT, KeyType.DECIMAL) and column_type in INTEGERS:
        return _rendered("key", name, render.INTEGER)
    if kind is KeyType.DECIMAL and column_type == "numeric":
        return _rendered("key", name, render.FINITE)
    is_same = (kind, column_type) in ((KeyType.UUID, "uuid"), (KeyType.BOOLEAN, "boolean"))
    return _as_stored("key", name, column_type) if is_same else None


def _compared(name: str, declared: str, column_type: str) -> SentColumn:
    as_name = f"c:{name}"
    native = _native_value(as_name, name, declared, bare(column_type))
    if native is not None:
        return native
    return SentColumn(name=as_name, selected=canonical_expression(_column(name), declared, column_type))


def _native_value(as_name: str, name: str, declared: str, column_type: str) -> SentColumn | None:
    scale = decimal_scale(declared)
    if scale is not None and scale <= _MOST_FRACTION_DIGITS:
        if column_type in INTEGERS:
            return _rendered(as_name, name, render.INTEGER, scale)
        return _rendered(as_name, name, render.ROUNDED, scale) if column_type == "numeric" else None
    if declared == "string" or declared == column_type in ("boolean", "uuid"):
        return _as_stored(as_name, name, column_type)
    if declared in ("int", "bigint"):
        if column_type in INTEGERS:
            return _rendered(as_name, name, render.INTEGER)
        return _rendered(as_name, name, render.TRIMMED) if column_type == "numeric" else None
    if declared == "timestamp" and column_type in _MOMENTS:
        return _rendered(as_name, name, render.MOMENT)
    return None


def _as_stored(as_name: str, name: str, column_type: str) -> SentColumn | None:
    """Return a column whose text is that of a cast to text, where we render it; None where PostgreSQL has to."""
    if column_type in _TEXTS:
        return SentColumn(name=as_name, selected=_column(name))
    kinds = {**dict.fromkeys(INTEGERS, render.INTEGER), "numeric": render.NUMERIC, "uuid": render.UUID}
    kind = {**kinds, "boolean": render.BOOLEAN}.get(column_type)
    return None if kind is None else _rendered(as_name, name, kind)


def _rendered(as_name: str, name: str, kind: int, scale: int = 0) -> SentColumn:
    return SentColumn(name=as_name, selected=_column(name), use=FieldUse.RENDERED, rule=Rule(kind, scale))
