"""JSON objects, one a line, read at once by Arrow's JSON reader with an explicit schema.

Refused rather than guessed: every value must be one object on its own, so that one bad value cannot shift its
neighbours.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from makewhole.compute.decode.json_document import DEEPEST
from makewhole.native.arrays import ArrowArray

_on: Any = pc  # and neither do those of its functions


class NotQuick(Exception):  # noqa: N818 - not an error: a way that is closed
    """This batch needs the record-by-record way."""


def read_lines(values: ArrowArray, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """Read the wanted paths (`a.b`) of each value of a binary column; a row each.

    Raises:
        NotQuick, ArrowInvalid, ArrowNotImplementedError: some value is unusual.
    """
    schema = _schema(wanted)
    lines = _joined(values)
    table = _read_json(lines, schema)
    if table.num_rows != len(values):
        raise NotQuick
    return table


def at_path(table: pa.Table, path: str) -> ArrowArray:
    """The column of a path."""
    first, *rest = path.split(".")
    column: ArrowArray = table.column(first).combine_chunks()
    for name in rest:
        column = _on.struct_field(column, name)
    return column


def are_usable_texts(texts: ArrowArray) -> bool:
    """Whether a string column has no null, no empty text and no NUL."""
    starts, body = _content(texts)
    return not texts.null_count and bool(np.diff(starts).min(initial=1) > 0) and bool(body.all())


def _joined(values: Any) -> pa.Buffer:
    """The values, one a line; refused unless each is non-empty, on one line, shallow and looks like one object.

    A line break in a value would let a string run on into the next one, and a NUL would end the reading: the rows after
    it would be missing, and two objects in one value make up for them. `NaN` and `Inf` would be read as numbers.
    """
    if values.null_count or not len(values):
        raise NotQuick
    starts, body = _content(values)
    if np.diff(starts).min() == 0 or (body[starts[:-1]] != ord("{")).any() or (body[starts[1:] - 1] != ord("}")).any():
        raise NotQuick
    is_control = body < ord(" ")
    if is_control.any() and np.isin(body[is_control], (ord("\n"), 0)).any():
        raise NotQuick
    if np.diff(starts).max() > DEEPEST and _most_brackets(starts, body) > DEEPEST:
        raise NotQuick
    values.cast(pa.string())  # raises unless each is UTF-8
    lines = _on.binary_join_element_wise(values, b"", b"\n")
    start, end = _starts(lines)[[0, -1]].tolist()
    joined: pa.Buffer = lines.buffers()[2].slice(start, end - start)
    text = joined.to_pybytes()
    if b"NaN" in text or b"Inf" in text:
        raise NotQuick
    return joined


def _starts(values: Any) -> npt.NDArray[np.int32]:
    """Where each value of a binary column begins in its bytes, and where the last ends."""
    return np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset : values.offset + len(values) + 1]


def _content(values: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The bytes of all values together, and where each begins in them."""
    starts = _starts(values)
    body = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)[starts[0] : starts[-1]]
    return starts - starts[0], body


def _most_brackets(starts: npt.NDArray[np.int32], body: npt.NDArray[np.uint8]) -> int:
    """How many brackets open in the value that has most of them."""
    opening = np.flatnonzero((body == ord("{")) | (body == ord("[")))
    return int(np.bincount(np.searchsorted(starts, opening, side="right")).max())


def _schema(wanted: Mapping[str, pa.DataType]) -> pa.Schema:
    tree: dict[str, Any] = {}
    for path, kind in wanted.items():
        *parents, leaf = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise NotQuick
        if leaf in node:
            raise NotQuick
        node[leaf] = kind
    return pa.schema(list(_struct(tree)))


def _struct(tree: Mapping[str, Any]) -> pa.StructType:
    return pa.struct([(name, _struct(kind) if isinstance(kind, dict) else kind) for name, kind in tree.items()])


def _read_json(body: pa.Buffer, schema: pa.Schema) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(body),  # type: ignore[arg-type]
        read_options=pj.ReadOptions(use_threads=False, block_size=body.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
