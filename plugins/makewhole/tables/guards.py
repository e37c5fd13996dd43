"""Decide by the rows of a key whether an item of a chunk is done, and in which words it is refused: the same for every
kind of table. `now` are the rows as the transaction of the chunk sees them."""

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.items import QuarantineRows, UpsertRow
from makewhole.tables.rows import TableRow

# Of a row that is written
APPEARED = Refusal(RefusalCode.ARRIVED, "a row of this key appeared after the plan was made")
ERASED = Refusal(RefusalCode.ERASED, "the row of this key is gone since the plan was made")
CHANGED = Refusal(RefusalCode.STALE, "the row of this key changed after the plan was made")
NEWER = Refusal(RefusalCode.STALE, "the row is of a newer version than the record")
OTHER_KEY = Refusal(RefusalCode.UNFIT, "written to this table, the record's value has another key than its own")

# Of a row that is put back
CHANGED_SINCE_WRITTEN = Refusal(RefusalCode.STALE, "the row was changed after the plan wrote it")
GONE = Refusal(RefusalCode.ERASED, "the row that the plan wrote is gone")
BACK_ALREADY = Refusal(RefusalCode.STALE, "the row was put back already")
_SURVIVOR_GONE = Refusal(
    RefusalCode.ERASED,
    "the row of this key that stayed is gone; whoever removed it may have intended to remove this one too",
)
_OTHERS_CHANGED = Refusal(RefusalCode.STALE, "the rows of this key changed after the plan moved this one aside")
_APPEARED_SINCE = Refusal(RefusalCode.STALE, "a row of this key appeared after the plan was done")


def upsert_refusal(item: UpsertRow, now: Sequence[TableRow]) -> Refusal | None:
    """Return why a row is not written by the rows of its key; None: they are as the plan saw them. Versions are
    compared besides (`NEWER`)."""
    if not item.before:
        return APPEARED if now else None
    if not now:
        return ERASED
    return None if list(now) == list(item.before) else CHANGED


def not_accounted_for(table: TableDescription, item: UpsertRow) -> Refusal | None:
    """Return why a row that is not there is not inserted: the table has columns now that were none, or were filled by a
    default, when the plan was made. None: each is accounted for."""
    silent = [name for name in table.unfilled if name not in item.columns and name not in item.left]
    if item.before or not silent:
        return None
    return Refusal(
        RefusalCode.STALE,
        f"nothing says what {', '.join(silent)} of a new row holds, and the table changed since the plan was "
        "made; account for it in the pipeline file (`write`, `leave`), and open a new revision of the window",
    )


def quarantine_refusal(item: QuarantineRows, now: Sequence[TableRow]) -> Refusal | None:
    """Return why the rows of a key are not those that the plan saw, or None when they are."""
    seen = {row for row in (item.survivor, *item.extras) if row is not None}
    current = set(now)
    if seen <= current:
        return None
    if item.survivor is not None and item.survivor not in current and not current - seen:
        return Refusal(
            RefusalCode.ERASED, "the row that was to stay is gone, so the extra rows may be the only copy left"
        )
    if current - seen:
        return Refusal(RefusalCode.STALE, "rows of this key changed after the plan was made")
    return Refusal(RefusalCode.ERASED, "an extra row of this key is gone already")


def survivor_image(item: QuarantineRows, now: Sequence[TableRow]) -> str | None:
    """Return the image of the row that stays, from the rows as they are now."""
    return next((row.image for row in now if row == item.survivor), None)


def row_as_left(effect: Effect, now: Sequence[TableRow]) -> TableRow | None:
    """Return the row that is exactly what the action left: of several equal ones, the one in its place. None: there is
    none."""
    left = _values_of_image(effect.after)
    equal = [row for row in now if _values_of_image(row.image) == left]
    return next((row for row in equal if row.place == effect.place), equal[0] if equal else None)


def require_insertable(effect: Effect, now: Sequence[TableRow], back: Sequence[str]) -> None:
    """Check that the key has the row that stayed, if one did, once, and no other rows but those that were put back
    (images `back`): not even one that equals any of these, which a loader may have written since.

    Raises:
        RefusedError: the key has other rows, or the row that stayed is gone.
    """
    if effect.kind is not EffectKind.MOVED and now:
        raise ActionRefusedError(_APPEARED_SINCE)
    stayed, rows = _values_of_image(effect.after), [_values_of_image(row.image) for row in now]
    expected = Counter(map(_values_of_image, back)) + Counter([] if stayed is None else [stayed])
    if Counter(rows) - expected:
        raise ActionRefusedError(_OTHERS_CHANGED)
    if stayed is not None and stayed not in rows:
        raise ActionRefusedError(_SURVIVOR_GONE)


# Images


@dataclass(frozen=True)
class _ExactNumber:
    """A number by its digits: no other one equals it, and neither a boolean nor a text does."""

    digits: str


def _values_of_image(image: str | None) -> Hashable:
    """Return what an image holds, equal where the same columns hold the same values, in whatever order they stand:
    that of a dataset follows its newest file. An image that is no JSON object is its text."""
    if image is None or not image.startswith("{"):
        return image
    try:
        return _hashable(json.loads(image, parse_int=_ExactNumber, parse_float=_ExactNumber))
    except ValueError:
        return image


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((name, _hashable(part)) for name, part in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    scalar: Hashable = value
    return scalar
