"""Write values as the texts that a table in memory keeps, and read them by the types of a pipeline.

A column keeps integers, numbers, booleans and texts as `makewhole.compute.canonical` writes them, and moments in UTC to
the microsecond: `2025-03-01T00:00:00.000000Z`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import canonical_text, is_own_text
from makewhole.compute.key_layout import column_key_type
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem, key_text
from makewhole.compute.row_filter import TypedTerm
from makewhole.compute.versions import version_number
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.description import Column
from makewhole.tables.keys import key_components
from tests.memory.rows import RowValues, StoredRow, StoredTable

_MOMENT = "timestamp with time zone"
_DECLARED = {"bigint": "bigint", "numeric": "int", "boolean": "boolean", "text": "string"}
"""Type of a column → the declared type whose canonical texts it keeps; moments are written otherwise."""

TYPES = (*_DECLARED, _MOMENT)
"""The types that columns may have."""


def stored_text(value: Any, column: Column) -> str | None:
    """Return the text that a column keeps of a JSON value with exact numbers.

    Raises:
        ValueError: it cannot hold the value.
    """
    if value is None:
        if column.is_required:
            raise ValueError(f"{column.name} takes no null")
        return None
    text = _moment_text(value) if column.type == _MOMENT else canonical_text(value, _DECLARED[column.type])
    is_fraction = column.type == "bigint" and "." in (text or "")
    if text is None or is_fraction or (text.startswith("!") and column.type != "text"):
        raise ValueError(f"{column.name} ({column.type}) does not hold this value")
    return text


def _moment_text(value: Any) -> str | None:
    try:
        return part_text(value, KeyType.TIMESTAMP)
    except KeyProblem:
        return None


def text_of_now() -> str:
    """Return the moment of now as a column keeps it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def exported_text(text: str | None, declared: str) -> str | None:
    """Return a column's text in a declared type, as frames for `table_frame` have it: what is no value of the type is
    the column's own text behind `!`."""
    canonical = canonical_text(text, declared)
    is_read = canonical is None or is_own_text(declared) or not canonical.startswith("!")
    return canonical if is_read else f"!{text}"


def moment_of(row: StoredRow, point: TablePoint) -> datetime | None:
    """Return the time of a row; None: it has none."""
    text = None if point.time is None else row.values[point.time]
    return None if text is None else datetime.fromisoformat(text)


def microseconds_of_row(row: StoredRow, point: TablePoint) -> int | None:
    """Return the time of a row in microseconds since 1970; None: it has none."""
    text = None if point.time is None else row.values[point.time]
    return None if text is None else int(canonical_text(text, "timestamp") or "")


def version_of_row(values: RowValues, point: TablePoint) -> Decimal | None:
    """Return the number of a row's version; None: it has none."""
    return None if point.version is None else version_number(values[point.version])


def excluded_by(row: StoredRow, filters: Mapping[str, tuple[TypedTerm, ...]]) -> str:
    """Return the hops whose filter a row does not pass, joined by commas."""
    return ",".join(
        hop for hop, terms in filters.items() if not all(term.holds(row.values[term.column]) for term in terms)
    )


def key_of_row(values: RowValues, point: TablePoint) -> str | None:
    """Return the business key of a row; None: it has none."""
    parts = _part_texts([values[name] for name in point.key], _kinds(point))
    return None if parts is None else key_text(parts)


def rows_of_key(table: StoredTable, point: TablePoint, key: str, *, is_exact: bool) -> list[StoredRow]:
    """Return the rows of a key, in no order. `is_exact`: not those of an equal key in another spelling.

    Raises:
        RefusedError: the table cannot hold such a key.
    """
    components = key_components(key, point.key)
    own = _kinds_of_columns(table, point)
    if _part_texts(components, own) is None:
        columns = ", ".join(f"{name} {table.columns[name].type}" for name in point.key)
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the key columns of {table.name} ({columns}) cannot hold it")
    kinds = _kinds(point) if is_exact else own
    wanted = _part_texts(components, kinds)
    return [
        row for row in table.rows.values() if _part_texts([row.values[name] for name in point.key], kinds) == wanted
    ]


def survivors_first(rows: Iterable[StoredRow], point: TablePoint, *, is_latest_first: bool) -> list[StoredRow]:
    """Return rows by time and place, or the latest version first; what has none of them is last."""
    ordered = sorted(rows, key=lambda row: (row.id, row.version))
    ordered.sort(key=_with_none_last(lambda row: microseconds_of_row(row, point), is_descending=is_latest_first))
    if is_latest_first:
        ordered.sort(key=_with_none_last(lambda row: version_of_row(row.values, point), is_descending=True))
    return ordered


def _with_none_last(
    number: Callable[[StoredRow], Decimal | int | None], *, is_descending: bool
) -> Callable[[StoredRow], tuple[bool, Decimal | int]]:
    def order(row: StoredRow) -> tuple[bool, Decimal | int]:
        version = number(row)
        return (True, 0) if version is None else (False, -version if is_descending else version)

    return order


def _kinds(point: TablePoint) -> Sequence[KeyType]:
    """Return the types by which the parts of a key are read."""
    return point.key_layout or (KeyType.STRING,) * len(point.key)


def _kinds_of_columns(table: StoredTable, point: TablePoint) -> Sequence[KeyType]:
    """Return the types that make two spellings one key in the columns themselves."""
    return [
        (column_key_type(table.columns[name].type) or kind) if kind is KeyType.STRING else kind
        for name, kind in zip(point.key, _kinds(point), strict=True)
    ]


def _part_texts(parts: Sequence[str | None], kinds: Sequence[KeyType]) -> list[str] | None:
    """Return the canonical texts of the parts of a key; None: one is no value of its type."""
    try:
        return [part_text(part, kind) for part, kind in zip(parts, kinds, strict=True)]
    except KeyProblem:
        return None
