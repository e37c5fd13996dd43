"""Call every compiled function once, so that none has to be compiled in the middle of a window."""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
from google.protobuf.empty_pb2 import Empty

from makewhole.compute.decode.avro.program import compile_schema
from makewhole.compute.decode.avro.schema import AvroType
from makewhole.compute.decode.protobuf.tables import compile_type
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.json_elements import divide_json
from makewhole.compute.frames import KEYS, empty
from makewhole.compute.indexed_keys.filters import build_filter, maybe_in
from makewhole.compute.judge.clean_keys import find_clean_keys
from makewhole.compute.judge.clean_versions import NOTHING_BEFORE, find_clean_versions
from makewhole.kafka.log.batches import Batch
from makewhole.kafka.log.records import BatchToDecode, decode
from makewhole.native import avro_scan, protobuf_scan
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.digest_lines import sum_of_matched_lines
from makewhole.native.moments import read_moments
from makewhole.native.numbered_texts import numbered_texts
from makewhole.native.offset_runs import among_runs, marked
from makewhole.native.plain_decimals import fraction_sizes
from makewhole.postgres.read.copy_binary import render
from makewhole.postgres.read.copy_binary.walk import RowWalk

_NONE = np.zeros(1, dtype=np.int32)
_VALUE = b'{"id":"a long enough key"}'
_DIVIDED = pa.array([b'{"lines":[1]}'])
_HEADERS = b"\x02" + b"\x02n" + b"\x02h"
_RECORD_TYPE = AvroType(kind="record")
_BODY = bytes([0, 0, 0, 1, 2 * len(_VALUE)]) + _VALUE + _HEADERS
_RECORD = bytes([2 * len(_BODY)]) + _BODY
_COPY = b"PGCOPY\n\xff\r\n\x00" + bytes(8) + b"\x00\x01" + b"\x00\x00\x00\x02" + b"\x00\x07" + b"\xff\xff"


def _decode_records() -> None:
    """Read one record, copied and as a view, and decode its value."""
    batch = Batch(0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1, 0, len(_RECORD))
    for has_views in (False, True):
        [part] = decode(0, [BatchToDecode(batch, _RECORD, 0, 1, False)], has_views=has_views)
        decode_values(part.columns, ValueShape(key=("$.id",), compare={}))


def _divide_json() -> None:
    """Divide one value, copied and as a view."""
    for values in (_DIVIDED, _DIVIDED.cast(pa.binary_view())):
        divide_json(values, ("lines",), ("lines",))


def _scan_avro() -> None:
    """Scan an empty value."""
    bodies = avro_scan.Bodies(Content(_COPY).bytes, _NONE, _NONE)
    avro_scan.scan(bodies, compile_schema(_RECORD_TYPE, ()).steps, 0)


def _scan_protobuf() -> None:
    """Scan an empty value."""
    messages = protobuf_scan.Messages(Content(_COPY).bytes, _NONE, _NONE)
    protobuf_scan.scan(messages, compile_type(Empty.DESCRIPTOR, ()).types, 0)


def _read_rows() -> None:
    """Read one row, and write its number."""
    number = RowWalk(1).rows(_COPY).fields(0)
    render.render(render.Rule(render.INTEGER), number)
    render.read_numbers(render.NUMBER, number)


def _read_texts() -> None:
    """Read no number, no moment and no text."""
    fraction_sizes(Content(_COPY).bytes, _NONE, _NONE)
    read_moments(Content(_COPY).bytes, _NONE, _NONE, 6)
    Blobs(starts=_NONE, lengths=_NONE).are_ascii(Content(_COPY))


def _judge() -> None:
    """Mark a position, look one up; look one key up in a filter, make its digest; pair keys, and versions."""
    zero, words, copies = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint64), empty(KEYS)
    numbered_texts(("", ""), [zero])
    marked(zero, zero, zero, 0, 2)
    among_runs((zero, zero), zero, 1, (zero, zero))
    maybe_in(build_filter(words, words), words, words)
    sum_of_matched_lines(words, words, words)
    find_clean_keys(copies, copies, "", copies)
    find_clean_versions(copies, copies, "", copies, NOTHING_BEFORE)


CALLS: tuple[Callable[[], None], ...] = (
    _divide_json,
    _scan_protobuf,
    _scan_avro,
    _read_rows,
    _decode_records,
    _read_texts,
    _judge,
)
"""The calls by which all functions are compiled, the longest first."""


def compile_all(processes: int) -> None:
    """Compile what was not compiled yet, in so many processes."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for call in [pool.submit(call) for call in CALLS]:
            call.result()


if __name__ == "__main__":
    compile_all(len(os.sched_getaffinity(0)))
