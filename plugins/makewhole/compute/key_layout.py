"""Decide by which types a pipeline's keys are read: its key layout.

The points that hops join carry the same keys, so that a part of the key has one type on all of them: the one that the
file declares, else the one that the columns have together. A topic without a declaration has none of its own.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem
from makewhole.config.key_layout import KeyLayout as KeyLayout
from makewhole.config.key_layout import with_layout as with_layout
from makewhole.model.errors import ConfigurationError, Problem, RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, Point, can_look_up, has_log, is_by_coordinates

KeyColumns = Mapping[str, tuple[str, ...]]
"""Table point → the types of its key columns, as the catalogue writes them, with their modifiers; no domains."""

_COLUMN_TYPES: Mapping[str, KeyType] = {
    "smallint": KeyType.BIGINT,
    "integer": KeyType.BIGINT,
    "bigint": KeyType.BIGINT,
    "numeric": KeyType.DECIMAL,
    "real": KeyType.DECIMAL,
    "double precision": KeyType.DECIMAL,
    "uuid": KeyType.UUID,
    "boolean": KeyType.BOOLEAN,
    "date": KeyType.DATE,
    "timestamp with time zone": KeyType.TIMESTAMP,
    "timestamp without time zone": KeyType.TIMESTAMP,
    "character": KeyType.CHAR,
    "bpchar": KeyType.CHAR,
    "text": KeyType.STRING,
    "character varying": KeyType.STRING,
    "citext": KeyType.STRING,
    "name": KeyType.STRING,
    "inet": KeyType.INET,
    "cidr": KeyType.INET,
}
_MODIFIER = re.compile(r"\(([^)]*)\)")
_TEXTS, _NUMBERS = {KeyType.STRING, KeyType.CHAR}, {KeyType.BIGINT, KeyType.DECIMAL}


def column_key_type(column_type: str) -> KeyType | None:
    """Return the type of the keys in a column of this type; None: only its text can be compared."""
    return _COLUMN_TYPES.get(_MODIFIER.sub("", column_type))


def common_type(kind: KeyType | None, other: KeyType | None) -> KeyType | None:
    """Return the type by which values of two types are compared; None: no value is of both.

    A text is read as the other's type. Of `None`, a type of which only the text can be compared, the text is.
    """
    both = {kind, other}
    if len(both) == 1:
        return kind or KeyType.STRING
    if both <= {*_TEXTS, None}:
        return KeyType.STRING
    if None in both:
        return None
    if both <= _NUMBERS:
        return KeyType.DECIMAL
    typed = both - _TEXTS
    return next(iter(typed)) if len(typed) == 1 and KeyType.TIMESTAMP not in typed else None


def can_hold(column_type: str, declared: KeyType) -> bool:
    """Return whether keys of the declared type can stand in a column of this type."""
    own = column_key_type(column_type)
    if declared is KeyType.STRING:
        return True
    return own is not None and (own is declared or {own, declared} <= _NUMBERS or _is_text_of(own, declared))


def _is_text_of(own: KeyType, declared: KeyType) -> bool:
    return own in _TEXTS and declared is not KeyType.TIMESTAMP


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One part of the key of points that hops join: its place at each point, with the column's type in tables."""

    number: int
    points: Mapping[str, Point]
    columns: Mapping[str, str]

    def declared(self) -> KeyType | None:
        said = next((point.key_types[self.number] for point in self.points.values() if point.key_types), None)
        places = [point.key[self.number] for point in self.points.values() if has_log(point)]
        return said or (KeyType.BIGINT if is_by_coordinates(places) else None)

    def named(self, point: str) -> str:
        return f"{point}.{self.points[point].key[self.number]}"


def key_layout(pipeline: Pipeline, columns: KeyColumns) -> KeyLayout:
    """Return the key layout of a pipeline whose tables have these key columns.

    Raises:
        ConfigurationError: two columns have types of which no value is both, or a column cannot hold the declared type.
    """
    layout: dict[str, tuple[KeyType, ...]] = {}
    problems: list[Problem] = []
    for names in pipeline.joined_points():
        kinds = []
        for part in _parts(pipeline, names, columns):
            kind, unfit = _type_of(part)
            problems += unfit
            kinds.append(kind)
        layout |= dict.fromkeys(names, tuple(kinds))
    if problems:
        raise ConfigurationError(problems)
    return layout


def _parts(pipeline: Pipeline, names: Sequence[str], columns: KeyColumns) -> Iterable[_Part]:
    points = {name: pipeline.points[name] for name in names}
    for number in range(min(len(point.key) for point in points.values())):
        types = {name: columns[name][number] for name in names if name in columns}
        yield _Part(number=number, points=points, columns=types)


def _type_of(part: _Part) -> tuple[KeyType, list[Problem]]:
    declared = part.declared()
    if declared is not None:
        wrong = [name for name, column in part.columns.items() if not can_hold(column, declared)]
        return declared, [
            _problem(
                part,
                name,
                f"{part.named(name)} is of type {part.columns[name]}, of which no value is a {declared.value}",
            )
            for name in wrong
        ]
    return _common_of_columns(part)


def _common_of_columns(part: _Part) -> tuple[KeyType, list[Problem]]:
    own = {name: column_key_type(column) for name, column in part.columns.items()}
    for first, name in combinations(own, 2):
        if common_type(own[first], own[name]) is None:
            found = (
                f"{part.named(first)} is of type {part.columns[first]} and {part.named(name)} of type "
                f"{part.columns[name]}: no value is both"
            )
            return KeyType.STRING, [_problem(part, name, found)]
    return (reduce(common_type, own.values()) if own else None) or KeyType.STRING, []


def _problem(part: _Part, point: str, found: str) -> Problem:
    remedy = f"Name columns that hold the same keys, or compare them as texts: `{declaration(part.points[point])}`"
    return Problem(file="pipeline file", path=f"points.{point}.key", found=found, remedy=remedy)


def declaration(point: Point, kinds: Sequence[KeyType] = ()) -> str:
    """Return the line of a pipeline file that declares the types of a point's key; texts as they are by default."""
    known = tuple(kinds) or (KeyType.STRING,) * len(point.key)
    parts = [f"{yaml_name(name)}: {kind.value}" for name, kind in zip(point.key, known, strict=True)]
    return f"key: {{{', '.join(parts)}}}"


def yaml_name(name: str) -> str:
    """Return a name as a pipeline file writes it: quoted where it has other signs than letters, digits and `_`."""
    return name if name.isidentifier() else f'"{name}"'


def require_same_spelling(pipeline: Pipeline, columns: KeyColumns, before: KeyLayout, now: KeyLayout) -> None:
    """Refuse a layout that spells keys in another way than the windows before: their index holds hashes of the texts.

    A change is none where the columns of the points that had a type write their values in the same way under both. Of
    points that the windows before did not have nothing is kept.

    Raises:
        RefusedError: keys of the windows before would not be found again.
    """
    for names in pipeline.joined_points():
        _require_same_number(pipeline, names, before, now)
        known = [name for name in names if before.get(name)]
        for part in _parts(pipeline, names, columns):
            kind = _kind_in(now, names, part.number)
            for was in dict.fromkeys(before[name][part.number] for name in known):
                of_kind = [name for name in known if before[name][part.number] is was]
                written = [part.columns[name] for name in of_kind if name in part.columns]
                if was is not kind and not _are_encoded_alike(written, was, kind):
                    first = next((name for name in of_kind if can_look_up(pipeline.points[name])), of_kind[0])
                    raise _of_another_type(pipeline, part, first, before[first], kind)


def _of_another_type(
    pipeline: Pipeline, part: _Part, point: str, before: Sequence[KeyType], kind: KeyType
) -> RefusedError:
    was = before[part.number]
    types = ", ".join(f"{part.named(name)} is {column}" for name, column in part.columns.items())
    return RefusedError(
        f"{pipeline.name}: the windows before compared {part.named(point)} as {was.value}, and this one would "
        f"as {kind.value}{f' ({types})' if types else ''}; keys that are kept from before (the key index, keys "
        "handed over) would not be found under their new spelling. To go on as before, write "
        f"`{declaration(pipeline.points[point], before)}` at points.{point}. To compare them as {kind.value}, "
        "give the pipeline another name: it begins a history of its own, from `start:` on"
    )


def _require_same_number(pipeline: Pipeline, names: Sequence[str], before: KeyLayout, now: KeyLayout) -> None:
    for name in names:
        were, are = len(before.get(name, ())), len(now.get(name, ()))
        if were and are and were != are:
            raise RefusedError(
                f"{pipeline.name}: the windows before compared keys of {were} parts at {name}, and this one would of "
                f"{are}; what is kept from before (the key index, keys handed over) would not be found again. "
                "Write the `key` of before, or give the pipeline another name: it begins a history of its own, from "
                "`start:` on"
            )


def require_same_keys(pipeline: Pipeline, layout: KeyLayout, keys: Iterable[tuple[str, str]]) -> None:
    """Refuse a layout under which one of these keys (point, key) has another spelling than its own.

    Raises:
        RefusedError: a key would not be found again.
    """
    other: dict[str, int] = {}
    for point, key in keys:
        if not _is_canonical(key, layout.get(point, ())):
            other[point] = other.get(point, 0) + 1
    for point, count in other.items():
        types = ", ".join(kind.value for kind in layout[point])
        raise RefusedError(
            f"{pipeline.name}: {count} keys of {point} that the last window handed over are written otherwise than a "
            f"key of type {types} is, and this window would not find them again. Write "
            f"`{declaration(pipeline.points[point])}` at points.{point} until they are judged"
        )


def _is_canonical(key: str, kinds: Sequence[KeyType]) -> bool:
    parts = json.loads(key) if len(kinds) > 1 else [key]
    try:
        return all(part_text(part, kind) == part for part, kind in zip(parts, kinds, strict=False))
    except KeyProblem:
        return False


def _kind_in(layout: KeyLayout, names: Iterable[str], number: int) -> KeyType:
    return next((layout[name][number] for name in names if layout.get(name)), KeyType.STRING)


def _are_encoded_alike(columns: Sequence[str], *kinds: KeyType) -> bool:
    return bool(columns) and all(_keeps_text(column, kind) for column in columns for kind in kinds)


def _keeps_text(column_type: str, kind: KeyType) -> bool:
    """Return whether the canonical text of each value of a column is the one that PostgreSQL writes."""
    if kind is KeyType.STRING:
        return True
    own = column_key_type(column_type)
    if own is KeyType.DECIMAL:
        return kind in _NUMBERS and column_type.startswith("numeric(") and column_type.endswith(",0)")
    return own is not None and own not in (KeyType.STRING, KeyType.TIMESTAMP) and (own is kind or own is KeyType.BIGINT)
