"""Choose what an upsert writes: of a missing row every column that is accounted for, of one that differs the columns
that differ from the source, and its version."""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from decimal import Decimal

from makewhole.compute.column_values import ColumnValue
from makewhole.compute.versions import are_one_version, is_multiple, version_of_canonical
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.items import ExpectedValue, RowToWrite
from makewhole.tables.new_row import NewRow
from makewhole.tables.rows import ValuedRow, differing_columns

NOTHING_DIFFERS = Refusal(RefusalCode.ARRIVED, "the row of this key has the values of its source by now")


@dataclass(frozen=True, kw_only=True)
class VersionToWrite:
    """The column of versions that the source has, too, and how far apart two of its versions are at least."""

    column: str
    unit: Decimal

    def is_compared(self, row: ValuedRow, values: Mapping[str, ColumnValue]) -> bool:
        """Return whether a row may hold another version than the source: not where the source has none of the key, nor
        where the row's is that one as the column rounds it."""
        wanted = values[self.column]
        if wanted.text is None:
            return False
        texts = (wanted.text, row.values.get(self.column))
        own, held = (version_of_canonical(text, wanted.declared) for text in texts)
        return not (self.is_rounded(values) and are_one_version(own, held, self.unit))

    def is_rounded(self, values: Mapping[str, ColumnValue]) -> bool:
        """Return whether the column holds another number than the source's version: it has fewer digits."""
        wanted = values[self.column]
        number = version_of_canonical(wanted.text, wanted.declared)
        return number is not None and not is_multiple(number, self.unit)


def missing_row(new: NewRow, values: Mapping[str, ColumnValue], hop: str, version: VersionToWrite | None) -> RowToWrite:
    """Return what is written of a row that is not there.

    Raises:
        RefusedError: nothing says what a column of the table holds, or the record has no value for one.
    """
    if new.unaccounted:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT,
            f"nothing says what {', '.join(new.unaccounted)} of a new row holds; write it under `write` or "
            f"`leave` of hop {hop}",
        )
    _require_values(new.written, values)
    expected = _expected(values, new.declared, version, new.written)
    return RowToWrite(columns=new.written, expected=expected, moment=new.moment, left=new.left, topic=new.topic)


def differing_row(
    table: TableDescription,
    values: Mapping[str, ColumnValue],
    compare: Mapping[str, str],
    version: VersionToWrite | None,
    row: ValuedRow,
) -> RowToWrite:
    """Return what is written of a row that is there.

    Raises:
        RefusedError: it differs in nothing, in what the table computes itself, or in a field that the record does not
            have; or the record has no value for a column.
    """
    known = {name for name in compare if name in values}
    if version is not None and version.is_compared(row, values):
        known.add(version.column)
    differing = differing_columns(row.values, {name: values[name].text for name in known})
    computed = [name for name in differing if table.columns[name].is_generated]
    if computed:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"{', '.join(computed)} cannot be written: the table computes it"
        )
    if not differing:
        raise ActionRefusedError(NOTHING_DIFFERS)
    if absent := [place for name in differing if (place := values[name].absent) is not None]:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT,
            f"the record has no field {', '.join(place.removeprefix('$.') for place in absent)}, and the row has a "
            "value there, which is not replaced by nothing; write the row by hand",
        )
    _require_values(differing, values)
    columns = tuple(name for name in table.writable if name in differing)
    return RowToWrite(columns=columns, expected=_expected(values, known, version, columns))


def _require_values(columns: Collection[str], values: Mapping[str, ColumnValue]) -> None:
    """Refuse to write what stands for no value, and what the column cannot be written with exactly."""
    absent = [name for name in columns if name in values and values[name].is_placeholder]
    if absent:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT,
            f"of {', '.join(absent)} the record has only the placeholder of its capture, which was sent because "
            "the value did not change; write the row by hand",
        )
    for name in columns:
        if name in values and (why := values[name].why_inexact) is not None:
            raise ActionRefusedError.of(RefusalCode.UNFIT, f"{name} is not written: {why}; write the row by hand")


def _expected(
    values: Mapping[str, ColumnValue], columns: Container[str], version: VersionToWrite | None, written: Container[str]
) -> tuple[ExpectedValue, ...]:
    """Return what a row must hold in some columns: what was written, and in the others what is compared."""
    rounded = version.column if version is not None and version.is_rounded(values) else None
    return tuple(
        (name, *(value.expected if name in written else (value.declared, value.text)))
        for name, value in values.items()
        if name in columns and name != rounded
    )
