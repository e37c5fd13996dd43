"""Describe a pipeline as a document that can be signed: everything that its file decides, and no secret."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from makewhole.model.pipeline import Pipeline
from makewhole.model.points import IN_DOCUMENT, WRITTEN_IF_ANY, WRITTEN_IF_SAID, has_log
from makewhole.signing.keys import sha256_of

_OF_A_READING = ("name", "points", "compare")
_OF_A_HOP = ("source", "target", "semantics", "where", "consumer_group")
_OF_A_HOP_IF_ANY = ("progress", "control_topic", "compare", "group")


def configuration_document(pipeline: Pipeline) -> dict[str, Any]:
    """Return the whole configuration of a pipeline, defaults included; of connections only their names.

    Numbers that are not whole are texts, so that every reader of the JSON gives the same bytes.
    """
    document: dict[str, Any] = plain(pipeline.as_written or pipeline)
    return document


def judging_sha256(pipeline: Pipeline) -> str:
    """Return the digest of the part of a configuration that decides a verdict: points, hops with their filters,
    compared columns and types, tolerances, baseline and times. Remedies and approval are left out: a plan has its own
    hash. `reach` and `history` are part of it where the file has them."""
    return _digest(pipeline, (*_OF_A_READING, "start", "settle", "gate"), "reach", "history")


def reading_sha256(pipeline: Pipeline) -> str:
    """Return the digest that decides whether two windows read points alike, so that their hashes of values can be
    compared: as `judging_sha256`, but for what only judges what was read: times, tolerances, how far back keys are
    known, and what becomes of keys with several records."""
    points = {
        name: replace(point, duplicates=None) if has_log(point) else point for name, point in pipeline.points.items()
    }
    return _digest(replace(pipeline, points=points), _OF_A_READING, "reach")


def _digest(pipeline: Pipeline, names: Sequence[str], *if_any: str) -> str:
    whole = configuration_document(pipeline)
    hops = [{name: hop[name] for name in (*_OF_A_HOP, *_OF_A_HOP_IF_ANY) if name in hop} for hop in whole["hops"]]
    named = [*names, *(name for name in if_any if getattr(pipeline, name) is not None)]
    return sha256_of({name: whole[name] for name in named} | {"hops": hops})


def plain(value: Any) -> Any:
    """Return a value as JSON has it: a class as an object, an enumeration by its value, other numbers and moments as
    text."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value) if _is_written(value, item)}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return _text(value)


def _is_written(value: Any, item: Field[Any]) -> bool:
    """Return whether the document has a field: one that came later leaves older documents alone while it is empty."""
    rule, held = item.metadata.get(IN_DOCUMENT), getattr(value, item.name)
    if rule == WRITTEN_IF_SAID[IN_DOCUMENT]:
        return held is not None
    return rule is None or (rule == WRITTEN_IF_ANY[IN_DOCUMENT] and bool(held))


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value / timedelta(microseconds=1):.0f} µs"
    if isinstance(value, float | Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be written into a certificate")
