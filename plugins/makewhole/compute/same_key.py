"""Refuse a key that is read from other fields than in the windows before: what is kept from them is of the other one.

A field may get another name. So a part of a key is another one only where it changed on every point that hops join:
what is the same on one of them is found on the others, or reported as missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.compute.key_layout import yaml_name
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class KeyField:
    """The field that a part of a point's key is read from, by its name in the file.

    `column` is the column's identity in a table's catalogue, which a new name leaves as it is; None in a topic.
    """

    name: str
    column: str | None = None

    def is_field(self, other: "KeyField") -> bool:
        """Return whether both are one field, under one name or two."""
        return self.name == other.name or (self.column is not None and self.column == other.column)


KeyFields = Mapping[str, tuple[KeyField, ...]]
"""Point → the fields of its key's parts."""
ColumnIds = Mapping[str, Mapping[str, str]]
"""Table point → column → its identity in the catalogue."""


def key_fields(pipeline: Pipeline, columns: ColumnIds) -> KeyFields:
    """Return the fields of every point's key."""
    return {
        point.name: tuple(
            KeyField(name=place, column=columns.get(point.name, {}).get(name))
            for name, place in zip(point.key, point.key_places, strict=True)
        )
        for point in pipeline.ordered_points()
    }


def as_document(fields: KeyFields) -> dict[str, list[dict[str, str | None]]]:
    """Return key fields as they are stored with a window."""
    return {point: [vars(field) for field in parts] for point, parts in fields.items()}


def from_document(stored: Mapping[str, Sequence[Mapping[str, str | None]]] | None) -> KeyFields:
    """Return key fields as they were stored."""
    return {
        point: tuple(KeyField(name=str(part["name"]), column=part["column"]) for part in parts)
        for point, parts in (stored or {}).items()
    }


def require_same_key(pipeline: Pipeline, before: KeyFields, now: KeyFields) -> None:
    """Refuse keys of which a part is another field on every point that hops join.

    Raises:
        RefusedError: keys of the windows before would not be found again.
    """
    for names in pipeline.joined_points():
        known = [name for name in names if len(before.get(name, ())) == len(now[name])]
        parts = range(min((len(now[name]) for name in known), default=0))
        if all(any(before[name][part].is_field(now[name][part]) for name in known) for part in parts):
            continue
        changed = [name for name in known if before[name] != now[name]]
        were, are = (", ".join(f"{name} by {_key(fields[name])}" for name in changed) for fields in (before, now))
        lines = ", ".join(f"`key: {_key(before[name])}` at points.{name}" for name in changed)
        raise RefusedError(
            f"{pipeline.name}: the windows before knew {were}, and this one would know {are}; what is kept from before "
            f"(the key index, keys handed over) would not be found again. To go on as before, write {lines}. To go by "
            "the other key, give the pipeline another name: it begins a history of its own, from `start:` on"
        )


def _key(fields: Sequence[KeyField]) -> str:
    names = [yaml_name(field.name) for field in fields]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"
