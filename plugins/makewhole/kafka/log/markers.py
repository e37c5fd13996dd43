"""Find the marker that ends a producer's transaction in a partition of the log."""

from typing import NamedTuple

from makewhole.kafka.log.batches import COMMIT_MARKER, marker_type
from makewhole.kafka.log.page import LogSource
from makewhole.kafka.log.page_walk import checked_batches
from makewhole.model.window import PartitionRange


class TransactionMarker(NamedTuple):
    """Where a transaction ended in a partition, and how. `producer_epoch` is the marker's own: where each transaction
    has an epoch of its own (KIP-890), one above that of its records."""

    offset: int
    producer_epoch: int
    is_commit: bool


def transaction_end(
    source: LogSource, wanted: PartitionRange, offset: int, producer_id: int
) -> TransactionMarker | None:
    """Return the first marker of a producer behind an offset of a range; None where the range has none, or what lies
    between cannot be read.

    Raises:
        TransientError: the source cannot answer now.
        CorruptionError: the archive is not whole.
    """
    position = offset
    while position < wanted.hi:
        page, before = source.fetch(wanted, position, "uncommitted"), position
        for batch, reason, _ in checked_batches(page, is_crc_checked=True):
            if reason is not None:
                return None
            if batch.is_control and batch.producer_id == producer_id and batch.base_offset > offset:
                marker = marker_type(batch, page.data)
                is_known = marker is not None and batch.base_offset < wanted.hi
                ended = TransactionMarker(batch.base_offset, batch.producer_epoch, marker == COMMIT_MARKER)
                return ended if is_known else None
            position = max(position, batch.end_offset)
        if position <= before:
            return None
    return None
