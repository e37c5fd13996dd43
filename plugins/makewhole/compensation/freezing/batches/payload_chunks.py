"""Keep the payloads of a plan's chunks until all are there: the payload file has them target by target."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.compensation.freezing.payload_file import SCHEMA, payload_table
from makewhole.lake.local_files import local_file
from makewhole.model.actions import Action, Payload
from makewhole.model.closing import ClosingContext


class PayloadChunks(ClosingContext):
    """The payloads of a plan, a table for each chunk. Close it after use."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._targets: dict[str, _TargetChunks] = {}

    def close(self) -> None:
        """Delete the files."""
        self._stack.close()

    def add(self, action: Action, payload: Payload) -> None:
        """Add the payload of a numbered action; those of a target come in the order of its chunks."""
        if action.target not in self._targets:
            self._targets[action.target] = _TargetChunks(self._stack)
        self._targets[action.target].add(action, payload)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the chunks, by target in the order of its first action. Nothing is added after that."""
        for chunks in self._targets.values():
            yield from chunks.tables()


class _TargetChunks:
    """The chunks of one target: the last one in memory, those before it in a file."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._file: IO[bytes] | None = None
        self._writer: Any = None
        self._chunk: list[tuple[int, Payload]] = []
        self._number = 0

    def add(self, action: Action, payload: Payload) -> None:
        if action.chunk != self._number:
            self._write()
            self._number = action.chunk
        self._chunk.append((action.seq, payload))

    def tables(self) -> Iterator[pa.Table]:
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.seek(0)
            with pq.ParquetFile(self._file) as written:
                yield from (written.read_row_group(number) for number in range(written.num_row_groups))
        yield payload_table(self._chunk)

    def _write(self) -> None:
        if self._writer is None:
            self._file = local_file(self._stack)
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._file, SCHEMA, compression="lz4"))
        self._writer.write_table(payload_table(self._chunk), row_group_size=len(self._chunk))
        self._chunk = []
