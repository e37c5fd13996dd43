"""Decode Debezium's change events: the fields of the row after the change, with or without Connect's envelope.

A deletion (`op: d`) has none; its key is that of the row before. The event's own fields stand under `EVENT`. Rows of
MongoDB are texts of its extended JSON. Source:
https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-change-events-value
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser
from makewhole.compute.decode.connect.extended_json import plain_document
from makewhole.compute.decode.connect.payload_columns import decode_payloads, payloads_by_opening
from makewhole.compute.decode.connect.payload_elements import PayloadDivision
from makewhole.compute.decode.json_document import parse_json
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.shapes.found_elements import FoundElements
from makewhole.compute.decode.value_format import EVENT, DecodedParts, Deletion, Headers, WantedLeaf, with_decimals
from makewhole.compute.keys import KeyProblem
from makewhole.native.arrays import ArrowArray, Int64s

_ROW_OPS = ("c", "u", "r")
_OP = "c:op of the event"
_NO_ROW = {
    "t": "value says that the whole table was truncated (op t): which keys it deletes is not known",
    "m": "value is a message of the source (op m), and of no row",
}


class ChangeEventFormat:
    """Values that are a change event of a row each."""

    has_deletions = True
    needs_key = False

    def __init__(self) -> None:
        self._parser = EnvelopeParser()

    def __repr__(self) -> str:
        return "debezium"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002 - says nothing here
        """Return the fields of the row after one change, and those of the event under `EVENT`."""
        if value is None:
            raise KeyProblem(
                "value is null (a tombstone behind a deletion), and has no field; write the point's key as a field of "
                "the record key (`kafka.key.NAME`), or set `tombstones.on.delete=false` on its connector"
            )
        envelope = self._parser.parse(value)
        event = parse_json(value) if envelope is None else envelope.payload
        if envelope is not None and event is None:
            raise Deletion("value has a payload of null (a tombstone)")
        if not isinstance(event, dict) or "op" not in event:
            raise KeyProblem(
                "value is no change event of Debezium (before, after, op); write `value: json` or `value: connect` at "
                "the point if its connector has `transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState`"
            )
        return _row_of(event)

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return the fields of the row after one change with every number a Decimal."""
        return with_decimals(self.document(value, headers))

    def encode(self, payload: bytes) -> bytes:  # noqa: ARG002
        """Refuse: what happened at the source cannot be made up."""
        raise KeyProblem("no record is made as a change event of Debezium")

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the events that have a row, schema by schema; those without a schema together."""
        parts: list[tuple[Int64s, pl.DataFrame]] = []
        lefts = []
        for rows, payloads, schema in self._by_schema(batch.column("value")):
            own, own_left = _decode_events(payloads, schema, wanted)
            parts += [(rows[at], frame) for at, frame in own]
            lefts.append(rows[own_left])
        return parts, np.concatenate(lefts)

    def find_elements(self, batch: pa.RecordBatch, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the events schema by schema. See `DividingFormat.find_elements`."""
        division = PayloadDivision(
            divided_at=_path_in_event(divided_at),
            wanted={"op", *(_path_in_event(path)[0] for path in places)},
            decode=_decode_events,
            envelopes=(),
            takes_empty=False,  # its op decides what it is
        )
        groups = (division.elements(*events) for events in self._by_schema(batch.column("value")))
        return FoundElements(records=batch.num_rows, groups=[group for group in groups if group is not None])

    def _by_schema(self, values: ArrowArray) -> Iterator[tuple[Int64s, ArrowArray, Any]]:
        """Yield the rows of the events of each schema, the events, and the schema: None where they have none."""
        groups, left = payloads_by_opening(values, self._parser)
        for rows, payloads, opening in groups:
            yield rows, payloads, opening.schema
        all_are_left = len(left) == len(values)
        yield left, values if all_are_left else values.cast(pa.binary()).take(pa.array(left, pa.int64())), None


def _row_of(event: dict[str, Any]) -> Mapping[str, Any]:
    op = event["op"]
    if op == "d":
        before = _document(event.get("before"))
        raise Deletion("value is a deletion (op d)", {**(before if isinstance(before, dict) else {}), EVENT: event})
    if op not in _ROW_OPS:
        reason = _NO_ROW.get(op) if isinstance(op, str) else None
        raise KeyProblem(reason or "value is a change event of an unknown kind (its op is none of c, u, d, r, t, m)")
    row = _document(event.get("after"))
    if not isinstance(row, dict):
        raise KeyProblem("value is a change event without the row after the change")
    return {**row, EVENT: event}


def _document(row: Any) -> Any:
    """Return a row; of MongoDB, whose rows are texts of JSON, the document in the text."""
    if not isinstance(row, str):
        return row
    try:
        return plain_document(parse_json(row.encode("utf-8", "surrogatepass")))
    except KeyProblem:
        return row


def _decode_events(events: ArrowArray, schema: Any, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
    if not len(events):
        return [], np.arange(0)
    texts = pl.Series("event", pl.from_arrow(events))
    # Only a shortcut past decoders that would refuse these, and many beside them: what counts is the op itself.
    has_no_row = texts.bin.contains(b'"op":"d"').fill_null(True).to_numpy()
    tried, left = np.flatnonzero(~has_no_row), np.flatnonzero(has_no_row)
    own = {name: WantedLeaf(_path_in_event(leaf.path), leaf.declared) for name, leaf in wanted.items()}
    own[_OP] = WantedLeaf(("op",), "string")
    some = events if not len(left) else events.cast(pa.binary()).take(pa.array(tried, pa.int64()))
    parts, own_left = decode_payloads(some, schema, own)
    kept, lefts = [], [left, tried[own_left]]
    for rows, frame in parts:
        has_row = (frame[_OP].is_in(_ROW_OPS).fill_null(False) & _are_rows(frame, wanted)).to_numpy()
        kept.append((tried[rows[has_row]], frame.filter(has_row).drop(_OP)))
        lefts.append(tried[rows[~has_row]])
    return kept, np.concatenate(lefts)


def _are_rows(frame: pl.DataFrame, wanted: Mapping[str, WantedLeaf]) -> pl.Series:
    """Return of which events it is sure that they have a row after the change: a field of it is not null."""
    of_row = [pl.col(name).is_not_null() for name, leaf in wanted.items() if leaf.path[0] != EVENT]
    return frame.select(pl.any_horizontal(pl.lit(False), *of_row).alias("has_row"))["has_row"]


def _path_in_event(path: tuple[str, ...]) -> tuple[str, ...]:
    return path[1:] if path[0] == EVENT else ("after", *path)
