"""Read a batch of JSON objects, one a line, with Arrow's JSON reader under an explicit schema.

A batch with an unusual value is refused: every value must be one object of its own, so that one bad value cannot shift
its neighbours.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from makewhole.compute.decode.json_document import DEEPEST
from makewhole.compute.decode.json_layout import Path
from makewhole.native.arrays import ArrowArray

_kernels: Any = pc  # as Any: the type stubs do not know these functions of binary and struct columns


class UnusualBatch(Exception):  # noqa: N818 - not an error: another decoder takes the batch
    """The batch has a value that must be decoded record by record."""


def read_lines(values: ArrowArray, wanted: Mapping[Path, pa.DataType], above: int = 0) -> pa.Table:
    """Read the wanted paths of each value of a binary column, one row per value. `above`: how deep the values stand in
    others.

    Raises:
        UnusualBatch, ArrowInvalid, ArrowNotImplementedError: some value is unusual.
    """
    schema = _schema(wanted)
    lines = _joined_lines(values, DEEPEST - above)
    table = _read_json(lines, schema)
    if table.num_rows != len(values):
        raise UnusualBatch
    return table


def column_at(table: pa.Table, path: Path) -> ArrowArray:
    """Return the column of a path."""
    first, *rest = path
    column: ArrowArray = table.column(first).combine_chunks()
    for name in rest:
        column = _kernels.struct_field(column, name)
    return column


def are_usable_texts(texts: ArrowArray) -> bool:
    """Return whether a string column has no null, no empty text and no NUL."""
    starts, body = _content(texts)
    return not texts.null_count and bool(np.diff(starts).min(initial=1) > 0) and bool(body.all())


def _joined_lines(values: Any, deepest: int) -> pa.Buffer:
    """Join the values, one a line; refuse them unless each is non-empty, on one line, shallow and in braces.

    After a line break in a value a string would run on into the next value. A NUL would end the reading: the rows after
    it would be missing, and two objects in one value could make up their number. `NaN` and `Inf` would be numbers.
    """
    if values.null_count or not len(values):
        raise UnusualBatch
    starts, body = _content(values)
    if np.diff(starts).min() == 0 or (body[starts[:-1]] != ord("{")).any() or (body[starts[1:] - 1] != ord("}")).any():
        raise UnusualBatch
    is_control = body < ord(" ")
    if is_control.any() and np.isin(body[is_control], (ord("\n"), 0)).any():
        raise UnusualBatch
    if np.diff(starts).max() > deepest and _most_brackets(starts, body) > deepest:
        raise UnusualBatch
    values.cast(pa.string())  # raises unless each is UTF-8
    lines = _kernels.binary_join_element_wise(values, b"", b"\n")
    start, end = _starts(lines)[[0, -1]].tolist()
    joined: pa.Buffer = lines.buffers()[2].slice(start, end - start)
    text = joined.to_pybytes()
    if b"NaN" in text or b"Inf" in text:
        raise UnusualBatch
    return joined


def _starts(values: Any) -> npt.NDArray[np.int32]:
    """Return the start of each value of a binary column in its bytes, and the end of the last."""
    return np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset : values.offset + len(values) + 1]


def _content(values: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the start of each value, and the end of the last, in the bytes of all values; and those bytes."""
    starts = _starts(values)
    body = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)[starts[0] : starts[-1]]
    return starts - starts[0], body


def _most_brackets(starts: npt.NDArray[np.int32], body: npt.NDArray[np.uint8]) -> int:
    """Return the number of opening brackets in the value that has most of them."""
    opening = np.flatnonzero((body == ord("{")) | (body == ord("[")))
    return int(np.bincount(np.searchsorted(starts, opening, side="right")).max())


def _schema(wanted: Mapping[Path, pa.DataType]) -> pa.Schema:
    tree: dict[str, Any] = {}
    for path, kind in wanted.items():
        *parents, leaf = path
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise UnusualBatch
        if leaf in node:
            raise UnusualBatch
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
