"""Recognise a record whose fields lie one level deeper: in an envelope they would be read as null, all of them.

Kafka Connect's JsonConverter writes `{"schema": …, "payload": …}` unless its `schemas.enable` is false, and Debezium's
connectors write change events (`before`, `after`, `source`, `op`) unless a transform takes the row out of them.
"""

from collections.abc import Collection, Iterable

import polars as pl

from makewhole.compute.decode.value_format import EVENT
from makewhole.compute.keys import KeyProblem
from makewhole.native.arrays import ArrowArray

_CONNECT = frozenset({"schema", "payload"})
_CHANGE = frozenset({"before", "after", "source", "op"})
ENVELOPES = (_CONNECT, _CHANGE)
"""Names, of which a value at whose top not all of a set are is no envelope."""
_SOUGHT = {
    ("schema", "payload"): _CONNECT,
    ("before", "after"): _CHANGE | {"ts_ms", "ts_us", "ts_ns", "transaction"},
}
"""Names that an envelope has, by which many values are searched, and all that it may have beside its fields."""
_ESCAPED_LETTERS = (rb"\u006", rb"\u007")
_REMEDIES = {
    _CONNECT: "Kafka Connect's envelope of schema and payload, and has no field {fields}; write `value: connect` at "
    "the point, or set `value.converter.schemas.enable=false` on its connector, and "
    "`value.converter.replace.null.with.default=false`, without which a null is written as the default of its column",
    _CHANGE: "a change event of Debezium (before, after, op), and has no field {fields}; write `value: debezium` at "
    "the point, or set `transforms=unwrap` and "
    "`transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState` on its connector",
}


def require_fields(names: Collection[str], wanted: Iterable[str]) -> None:
    """Refuse a value with these `names` at its top that is an envelope and does not have all `wanted` fields there.

    Raises:
        KeyProblem: it is; with the format that reads the fields, and the setting that takes them out of it.
    """
    kind = _kind_of(names)
    absent = [] if kind is None else sorted(set(wanted) - set(names))
    if kind is not None and absent:
        raise KeyProblem(f"value is {_REMEDIES[kind].format(fields=', '.join(absent))}")


def is_envelope(names: Collection[str], wanted: Iterable[str]) -> bool:
    """Return whether `require_fields` refuses the value."""
    try:
        require_fields(names, wanted)
    except KeyProblem:
        return True
    return False


def may_be_envelopes(values: ArrowArray, wanted: Iterable[str]) -> bool:
    """Return whether a value of a binary column has the names of an envelope anywhere that lacks a wanted field."""
    asked, column = set(wanted), pl.Series(pl.from_arrow(values))
    return any(not asked <= own and bool(_hold(column, names).any()) for names, own in _SOUGHT.items())


def _hold(column: pl.Series, names: Iterable[str]) -> pl.Series:
    """Return which values have all of these names in quotation marks, or an escape that may be a letter of one."""
    value = pl.col("value").bin
    tests = (value.contains(f'"{name}"'.encode()) for name in names)
    is_escaped = pl.any_horizontal(*(value.contains(escape) for escape in _ESCAPED_LETTERS))
    return column.to_frame("value").select((pl.all_horizontal(*tests) | is_escaped).fill_null(False)).to_series()


def _kind_of(names: Collection[str]) -> frozenset[str] | None:
    if EVENT in names:  # taken out of its envelope
        return None
    if set(names) == _CONNECT:
        return _CONNECT
    return _CHANGE if _CHANGE.issubset(names) else None
