"""Describe what an action would change in the rows of a key, for people to look at before they approve it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from makewhole.tables.description import Column, TableDescription
from makewhole.tables.items import UpsertRow


class HowFilled(StrEnum):
    """The way in which a column of a row that is written is filled."""

    WRITTEN = "written"
    MOMENT = "the moment of the write"
    OWN = "the table's own"
    EMPTY = "left empty"
    FOUND = "as in the file that has the row"


@dataclass(frozen=True, kw_only=True)
class ColumnChange:
    """A column of a row that would be written, with its texts before and after; None: null, or not known beforehand."""

    name: str
    how: HowFilled
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """The rows of a key before and after an action, as JSON texts.

    `before` are all of the key, `after` those that would be left, `aside` those moved aside. A new row has only the
    columns that are written; `columns` names the others, too. Of a row that is there it has those that change.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    aside: tuple[str, ...] = ()
    columns: tuple[ColumnChange, ...] = ()


def upserted(table: TableDescription, item: UpsertRow, before: Sequence[str], after: str) -> RowChange:
    """Return what an upsert changes; both as JSON texts of rows, `before` without one where it inserts."""
    old, new = json.loads(before[0], parse_float=Decimal) if before else {}, json.loads(after, parse_float=Decimal)
    columns = table.columns.values() if not before else (table.columns[name] for name in item.columns)
    return RowChange(
        before=tuple(before),
        after=(after,),
        columns=tuple(
            ColumnChange(
                name=column.name,
                how=_how(column, item, is_there=new.get(column.name) is not None),
                before=_text(old.get(column.name)),
                after=_text(new.get(column.name)) if column.name != item.moment else None,
            )
            for column in columns
        ),
    )


def _how(column: Column, item: UpsertRow, *, is_there: bool) -> HowFilled:
    if column.name == item.moment:
        return HowFilled.MOMENT
    if column.name in item.columns:
        return HowFilled.WRITTEN
    if column.is_generated or column.has_default:
        return HowFilled.OWN
    return HowFilled.FOUND if is_there else HowFilled.EMPTY


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, Decimal) else json.dumps(value, default=str, ensure_ascii=False)


def column_lines(columns: Sequence[ColumnChange], *, is_new: bool) -> Iterator[str]:
    """Yield a line for each column: of a row that is there its texts, of a new one where its value comes from."""
    for column in columns:
        after = "null" if column.after is None else column.after
        if not is_new:
            yield f"{column.name}: {'null' if column.before is None else column.before} → {after}"
        else:
            origin = f"{after}, {column.how.value}" if column.how is HowFilled.FOUND else column.how.value
            yield f"{column.name}: {after if column.how is HowFilled.WRITTEN else origin}"
