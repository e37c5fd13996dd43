"""Define a page of the log and the sources it comes from: brokers and archives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.batches import Batch
from makewhole.model.window import PartitionRange

Isolation = Literal["committed", "uncommitted"]


@dataclass(frozen=True, kw_only=True)
class LogPage:
    """Bytes from the asked offset on, with the whole batches in them.

    `log_start` above the asked offset: what lies before it is expired. `hole_end`: it is proven that no batch exists
    from the asked offset up to there. `broken_end`: what should hold the offsets up to there is not whole.
    `truncated_end`: what lies before it was cut off the log before it could be read. `aborted` belongs to this page
    only.
    """

    data: bytes = b""
    batches: Sequence[Batch] = ()
    log_start: int = 0
    hole_end: int | None = None
    broken_end: int | None = None
    truncated_end: int | None = None
    aborted: Sequence[AbortedTransaction] = ()


class LogSource(Protocol):
    """Source of batches."""

    def check(self, wanted: PartitionRange) -> None:
        """Refuse another incarnation of the topic.

        Raises:
            RefusedError: the topic id is another one.
        """

    def fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> LogPage:
        """Return the page at `offset`: batches, an expired start, or a proven hole; never nothing.

        Raises:
            TransientError: the source does not get that far now, or was cut back while it was read.
        """

    def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: Isolation) -> int:
        """Return where the first reachable batch behind the damaged one at `offset` begins; `wanted.hi`: there is none.

        `likely` is the end that the damaged one claims, which may be true.

        Raises:
            TransientError: the source cannot answer now.
        """

    def intact_end(self, wanted: PartitionRange) -> int:
        """Return up to where the range still is the one that was frozen, by its leader epochs; `wanted.hi` or less.

        Records from there on are others: the log was truncated, and its offsets were used again.

        Raises:
            TransientError: the source cannot answer now.
        """

    def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:
        """Return why a hole between batches, `[start, end)`, is not compaction's work; None where it is."""
