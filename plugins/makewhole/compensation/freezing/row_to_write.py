"""Choose what an upsert writes: of a missing row every column that is accounted for, of one that differs the columns
that differ from the source, and its version."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from makewhole.compute.column_values import ColumnValue
from makewhole.model.errors import RefusedError
from makewhole.postgres.read.valued_rows import ValuedRow, differing_columns
from makewhole.postgres.tables import Table
from makewhole.postgres.write.new_row import NewRow
from makewhole.postgres.write.upsert_row import ExpectedValue

NOTHING_DIFFERS = "arrived: the row of this key has the values of its source by now"


@dataclass(frozen=True, kw_only=True)
class RowToWrite:
    """The columns that are written, the one of them that gets the moment of the write, what the row must hold
    afterwards, and the columns of a new row that stay empty on purpose."""

    columns: tuple[str, ...]
    expected: tuple[ExpectedValue, ...]
    moment: str | None = None
    left: tuple[str, ...] = ()


def missing_row(new: NewRow, values: Mapping[str, ColumnValue], hop: str) -> RowToWrite:
    """Return what is written of a row that is not there.

    Raises:
        RefusedError: nothing says what a column of the table holds, or the record has no value for one.
    """
    if new.unaccounted:
        raise RefusedError(
            f"unfit: nothing says what {', '.join(new.unaccounted)} of a new row holds; write it under `write` or "
            f"`leave` of hop {hop}"
        )
    _require_values(new.written, values)
    expected = _expected(values, new.declared)
    return RowToWrite(columns=new.written, expected=expected, moment=new.moment, left=new.left)


def differing_row(
    table: Table, values: Mapping[str, ColumnValue], compare: Mapping[str, str], version: str | None, row: ValuedRow
) -> RowToWrite:
    """Return what is written of a row that is there. `version`: the column that holds it, where the source has one.

    Raises:
        RefusedError: it differs in nothing, in what the table computes itself, or the record has no value for a column.
    """
    known = {name for name in compare if name in values}
    if version is not None and values[version].text is not None:  # a record without one says nothing of it
        known.add(version)
    differing = differing_columns(row.values, {name: values[name].text for name in known})
    computed = [name for name in differing if table.columns[name].is_generated]
    if computed:
        raise RefusedError(f"unfit: {', '.join(computed)} cannot be written: the table computes it")
    if not differing:
        raise RefusedError(NOTHING_DIFFERS)
    _require_values(differing, values)
    columns = tuple(name for name in table.writable if name in differing)
    return RowToWrite(columns=columns, expected=_expected(values, known))


def _require_values(columns: Iterable[str], values: Mapping[str, ColumnValue]) -> None:
    """Refuse to write what stands for no value."""
    absent = [name for name in columns if name in values and values[name].is_placeholder]
    if absent:
        raise RefusedError(
            f"unfit: of {', '.join(absent)} the record has only the placeholder of its capture, which was sent because "
            "the value did not change; write the row by hand"
        )


def _expected(values: Mapping[str, ColumnValue], columns: Container[str]) -> tuple[ExpectedValue, ...]:
    return tuple((name, value.declared, value.text) for name, value in values.items() if name in columns)
