"""Divide actions into chunks when a plan is frozen, and find the chunks again when it runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from makewhole.model.actions import Action, Payload
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Limits

_ACTIONS_MOST = 10_000
_PAYLOAD_BYTES_MOST = 64 << 20

PlannedPayload = tuple[Action, Payload]


@dataclass(frozen=True, kw_only=True)
class ChunkRows:
    """A chunk of a plan: its number at its target, its row group in the payload file, its rows among the actions."""

    number: int
    group: int
    rows: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.rows)


def actions_per_chunk(limits: Limits) -> int:
    """Return the actions per chunk: at most a second's worth of the permitted rate, which is kept between chunks."""
    return max(1, min(_ACTIONS_MOST, limits.records_per_second))


def number_actions(
    items: Iterable[PlannedPayload], actions_most: int, bytes_most: int = _PAYLOAD_BYTES_MOST
) -> Iterator[PlannedPayload]:
    """Number the items without changing their order: `seq` over all, `chunk` within each target.

    A chunk ends before it has more than `actions_most` actions or `bytes_most` of payload; one payload always fits.
    """
    open_chunks: dict[str, _OpenChunk] = {}
    for seq, (action, payload) in enumerate(items):
        chunk = open_chunks.setdefault(action.target, _OpenChunk()).add(payload.size_bytes, actions_most, bytes_most)
        yield replace(action, seq=seq, chunk=chunk), payload


@dataclass
class _OpenChunk:
    """The last chunk of a target while actions are added to it."""

    number: int = 0
    actions: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int, actions_most: int, bytes_most: int) -> int:
        is_full = self.actions == actions_most or self.size_bytes + size_bytes > bytes_most
        if self.actions and is_full:
            self.number, self.actions, self.size_bytes = self.number + 1, 0, 0
        self.actions += 1
        self.size_bytes += size_bytes
        return self.number


def chunks_of(actions: pa.Table) -> Mapping[str, Sequence[ChunkRows]]:
    """Return the chunks of each target, in the order of their first action, from the columns of the journal.

    Raises:
        CorruptionError: chunks are missing or out of order.
    """
    targets: Any = actions.column("target").combine_chunks()
    codes, numbers = targets.indices.to_numpy(), actions.column("chunk").to_numpy()
    chunks: dict[str, list[ChunkRows]] = {}
    group = 0
    for code, name in enumerate(targets.dictionary.to_pylist()):  # in the order of appearance
        rows = np.flatnonzero(codes == code)
        pieces = np.split(rows, np.flatnonzero(np.diff(numbers[rows])) + 1)
        if [int(numbers[piece[0]]) for piece in pieces] != list(range(len(pieces))):
            raise CorruptionError(f"the chunks of {name} are out of order; open a new revision of the window")
        chunks[name] = [ChunkRows(number=n, group=group + n, rows=piece) for n, piece in enumerate(pieces)]
        group += len(pieces)
    return chunks


def take_chunk(actions: pa.Table, chunk: ChunkRows) -> pa.Table:
    """Return the actions of a chunk, in order."""
    first, last = int(chunk.rows[0]), int(chunk.rows[-1])
    if last - first + 1 == chunk.size:
        return actions.slice(first, chunk.size)
    return actions.take(chunk.rows)
