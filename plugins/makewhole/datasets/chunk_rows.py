"""Do the items of a chunk on the rows of keys, as images: which rows go, which come, and what is kept of it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from makewhole.datasets.items_of_chunks import fields_of, is_newer, own_topic, require_as_expected
from makewhole.datasets.key_rows import KeyRow, Origin, in_order, key_rows
from makewhole.datasets.nested_columns import all_types, column_at, steps_to
from makewhole.datasets.nested_values import rows_of_images
from makewhole.datasets.written_values import exact_now, exact_value
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.guards import (
    BACK_ALREADY,
    CHANGED_SINCE_WRITTEN,
    GONE,
    NEWER,
    not_accounted_for,
    quarantine_refusal,
    require_insertable,
    row_as_left,
    survivor_image,
    upsert_refusal,
)
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId

ALTERED = Refusal(RefusalCode.UNFIT, "the table has other columns than when the plan wrote the row")
AsidePlace = tuple[str, int, str]
"""Plan, action and place of a row that was moved aside."""


@dataclass(kw_only=True)
class DatasetChunk:
    """The rows of the keys of a chunk, as its items see and change them, one after the other.

    `rows`: by the text of a key that its spellings have in common, which `spelling` returns. `put_back`: the images of
    rows that were put back, by where they had been moved from. `place`: that of rows that the chunk writes. `outside`:
    by the text of a key, the image of a row of it that lies outside the table; a new row is this one, if it has what
    the plan writes.
    """

    schema: pa.Schema
    point: TablePoint
    description: TableDescription
    id: ChunkId
    number: int
    place: str
    spelling: Callable[[str], str]
    rows: dict[str, list[KeyRow]]
    put_back: dict[AsidePlace, str]
    outside: Mapping[str, str] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    returned: dict[int, AsidePlace] = field(default_factory=dict)
    removed: list[Origin] = field(default_factory=list)

    @property
    def added(self) -> list[str]:
        """The images of the rows that the chunk leaves."""
        return [row.image for rows in self.rows.values() for row in rows if row.origin is None]

    def alone(self) -> "DatasetChunk":
        """Return the same rows, for items whose effects these do not see."""
        return replace(
            self,
            rows={key: list(rows) for key, rows in self.rows.items()},
            put_back=dict(self.put_back),
            effects=[],
            returned={},
            removed=[],
        )

    def do_each(self, items: Iterable[RowItem]) -> dict[int, Refusal]:
        """Do items in order, each as a whole; return the refusals by action number."""
        refused: dict[int, Refusal] = {}
        for item in items:
            try:
                self._do(item)
            except RefusedError as error:
                refused[item.seq] = error.refusal
        return refused

    def of_key(self, key: str, *, is_exact: bool) -> list[KeyRow]:
        """Return the rows of a key in their order. `is_exact`: not those of an equal key in another spelling.

        Raises:
            RefusedError: the table cannot hold such a key.
        """
        return in_order(row for row in self.rows.get(self.spelling(key), ()) if not is_exact or row.key == key)

    def _do(self, item: RowItem) -> None:
        match item:
            case UpsertRow():
                self._upsert(item)
            case QuarantineRows():
                self._move_aside(item)
            case RestoreRow():
                self._restore(item)

    # A row that is written

    def _upsert(self, item: UpsertRow) -> None:
        rows = self.of_key(item.key, is_exact=False)
        refusal = upsert_refusal(item, [key_row.row for key_row in rows]) or not_accounted_for(self.description, item)
        if refusal is not None:
            raise ActionRefusedError(refusal)
        fields = fields_of(item)
        old = rows[0] if item.before else None
        if old is not None and is_newer(self.point, old, fields):
            raise ActionRefusedError(NEWER)
        values = dict.fromkeys(self.schema.names) if old is None else json.loads(old.image)
        for name in item.columns:
            self._set(values, name, fields.get(name), is_moment=name == item.moment)
        for name, topic in own_topic(self.point, item).items():
            self._set(values, name, topic, is_moment=False)
        self._require_filled(values)
        new = self._row_of(values)
        require_as_expected(self.point, item, new)
        self._replace(item.seq, item.key, old, new if old is not None else self._as_outside(item, new))

    def _as_outside(self, item: UpsertRow, new: pa.Table) -> pa.Table:
        """Return the row of the key that lies outside the table, with all its columns; the new one where there is none,
        or where it differs in what the plan writes."""
        image = self.outside.get(self.spelling(item.key))
        if image is None:
            return new
        row = self._rows_of_image(image)
        written = [name for name in item.columns if name != item.moment]
        return row if all(column_at(row, name).equals(column_at(new, name)) for name in written) else new

    def _set(self, values: dict[str, Any], name: str, value: Any, *, is_moment: bool) -> None:
        """Set a column, or a part of one, in the values of a row."""
        kind = all_types(self.schema)[name]
        try:
            exact = exact_now(kind) if is_moment else exact_value(value, kind)
        except (ValueError, pa.ArrowException) as error:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"the table does not take it: {name} ({kind}) does not hold this value ({error})"
            ) from None
        *outer, last = steps_to(self.schema, name)
        of_type: Any = self.schema
        for step in outer:
            of_type = of_type.field(step) if of_type is self.schema else of_type.type.field(step)
            if values.get(step) is None:
                if exact is None:
                    return  # a part of what is not there is nothing
                values[step] = dict.fromkeys(part.name for part in of_type.type)
            values = values[step]
        values[last] = exact

    def _require_filled(self, values: Mapping[str, Any]) -> None:
        empty = [column.name for column in self.schema if not column.nullable and values[column.name] is None]
        if empty:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"the table does not take it: {', '.join(empty)} takes no null"
            )

    def _row_of(self, values: Mapping[str, Any]) -> pa.Table:
        return self._rows_of_image(json.dumps(values, ensure_ascii=True, separators=(",", ":")))

    def _rows_of_image(self, image: str) -> pa.Table:
        """Return the row of an image.

        Raises:
            RefusedError: the table has other columns by now.
        """
        try:
            return rows_of_images([image], self.schema)
        except ValueError:
            raise ActionRefusedError(ALTERED) from None

    # Rows that are moved aside

    def _move_aside(self, item: QuarantineRows) -> None:
        rows = self.of_key(item.key, is_exact=True)
        now = [key_row.row for key_row in rows]
        refusal = quarantine_refusal(item, now)
        if refusal is not None:
            raise ActionRefusedError(refusal)
        stays = survivor_image(item, now)
        for extra in item.extras:
            self._take(item.seq, EffectKind.MOVED, next(key_row for key_row in rows if key_row.row == extra), stays)

    # Rows that are put back

    def _restore(self, item: RestoreRow) -> None:
        rows, effect = self.of_key(item.key, is_exact=False), item.effect
        if effect.kind in (EffectKind.INSERTED, EffectKind.UPDATED):
            self._take_back(item, rows)
            return
        back = [image for (plan, seq, _), image in self.put_back.items() if (plan, seq) == (effect.plan, effect.seq)]
        require_insertable(effect, [key_row.row for key_row in rows], back)
        where = (effect.plan, effect.seq, effect.place)
        if effect.kind is EffectKind.MOVED and where in self.put_back:
            raise ActionRefusedError(BACK_ALREADY)
        row = self._rows_of_image(effect.before or "{}")
        self._replace(item.seq, item.key, None, row)
        if effect.kind is EffectKind.MOVED:
            self.put_back[where] = effect.before or ""
            self.returned[len(self.effects) - 1] = where

    def _take_back(self, item: RestoreRow, rows: Sequence[KeyRow]) -> None:
        effect = item.effect
        left = row_as_left(effect, [key_row.row for key_row in rows])
        if left is None:
            self._rows_of_image(effect.after or "{}")
            raise ActionRefusedError(CHANGED_SINCE_WRITTEN if rows else GONE)
        row = next(key_row for key_row in rows if key_row.row == left)
        if effect.kind is EffectKind.INSERTED:
            self._take(item.seq, EffectKind.DELETED, row, None)
        else:
            self._replace(item.seq, item.key, row, self._rows_of_image(effect.before or "{}"))

    # What becomes of rows

    def _replace(self, seq: int, key: str, old: KeyRow | None, new: pa.Table) -> None:
        """Put a row in the place of another one, or of none."""
        if old is not None:
            self._drop(old)
        added = key_rows(new, self.point, self.number, [self.place], [None])[0]
        self.rows.setdefault(self.spelling(key), []).append(added)
        kind = EffectKind.INSERTED if old is None else EffectKind.UPDATED
        self._keep(seq, kind, self.place, None if old is None else old.image, added.image)

    def _take(self, seq: int, kind: EffectKind, row: KeyRow, stays: str | None) -> None:
        """Take a row away; `stays` is the image of the row of its key that stays."""
        self._drop(row)
        self._keep(seq, kind, row.row.place or "", row.image, stays)

    def _drop(self, row: KeyRow) -> None:
        for rows in self.rows.values():
            gone = next((held for held in rows if held.origin == row.origin and held.row.image == row.row.image), None)
            if gone is not None:
                rows.remove(gone)
                if gone.origin is not None:
                    self.removed.append(gone.origin)
                return

    def _keep(self, seq: int, kind: EffectKind, place: str, before: str | None, after: str | None) -> None:
        self.effects.append(
            Effect(
                plan=self.id.plan,
                target=self.id.target,
                chunk=self.id.chunk,
                seq=seq,
                kind=kind,
                place=place,
                before=before,
                after=after,
            )
        )
