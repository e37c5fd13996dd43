"""Describe a segment of the archive in the file beside it: the offsets it covers, and the digest that proves it whole.

`<base offset, 20 digits>.aborted.json`, one JSON object. Kafka's own tools do not look at it.
"""

import json
from dataclasses import dataclass
from typing import Annotated

import msgspec

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.account import OffsetSpan
from makewhole.kafka.log.salvage import Undecodable

SIDECAR = ".aborted.json"


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One file of the archive and what it covers: offsets `[lo, hi)` of one partition of one topic incarnation.

    `sha256` is the file's, in hex; None in archives that were written before it was kept. `expired`, `truncated`,
    `unexplained` and `aborted` are those of the read that wrote it. `left_out`: offsets whose batch the range before
    was to keep, since it begins there.
    """

    base_offset: int
    topic: str
    topic_id: str
    partition: int
    lo: int
    hi: int
    size_bytes: int
    sha256: str | None
    expired: tuple[OffsetSpan, ...] = ()
    truncated: tuple[OffsetSpan, ...] = ()
    unexplained: tuple[Undecodable, ...] = ()
    left_out: OffsetSpan | None = None
    aborted: tuple[AbortedTransaction, ...] = ()

    def to_json(self) -> bytes:
        """Return the sidecar's content."""
        value = {name: getattr(self, name) for name in _PLAIN}
        value["expired"] = [list(span) for span in self.expired]
        value["truncated"] = [list(span) for span in self.truncated]
        value["unexplained"] = [[place.offset, place.end_offset, place.reason] for place in self.unexplained]
        value["left_out"] = None if self.left_out is None else list(self.left_out)
        value["aborted"] = [
            [transaction.producer_id, transaction.first_offset, transaction.marker_offset]
            for transaction in self.aborted
        ]
        return json.dumps(value, sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Segment":
        """Return the segment of a sidecar's content.

        Raises:
            ValueError: the text is no sidecar.
        """
        try:
            read = msgspec.json.decode(text, type=_Sidecar)
        except msgspec.MsgspecError as error:
            raise ValueError(f"no sidecar: {error}") from error
        return cls(
            **{name: getattr(read, name) for name in _PLAIN},
            expired=read.expired,
            truncated=read.truncated,
            unexplained=tuple(Undecodable(read.partition, *place) for place in read.unexplained),
            left_out=read.left_out,
            aborted=tuple(
                AbortedTransaction(producer_id=producer, first_offset=first, marker_offset=marker)
                for producer, first, marker in read.aborted
            ),
        )


_Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_SpanInFile = tuple[_Whole, _Whole]


class _Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a sidecar, as they are held to their types. Those with a default were added later."""

    base_offset: _Whole
    topic: str
    topic_id: str
    partition: _Whole
    lo: _Whole
    hi: _Whole
    size_bytes: _Whole
    expired: tuple[_SpanInFile, ...]
    aborted: tuple[tuple[_Whole, _Whole, _Whole | None], ...]
    sha256: str | None = None
    truncated: tuple[_SpanInFile, ...] = ()
    unexplained: tuple[tuple[_Whole, _Whole, str], ...] = ()
    left_out: _SpanInFile | None = None


_PLAIN = ("base_offset", "topic", "topic_id", "partition", "lo", "hi", "size_bytes", "sha256")
