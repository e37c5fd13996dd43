"""Check the batches of a page: for each damaged one, the reason and the next sound one.

The checksum covers neither a batch's length nor its base offset, and where it fails nothing in the batch is sure. So
a damaged batch ends where the next sound one begins, never where its own numbers say.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from makewhole.kafka.log.batches import Batch, find_defect
from makewhole.kafka.log.page import LogPage

_REACHES_OVER = "its offsets reach into those of the next batch"
_GOES_BACK = "its offsets lie before the end of the batch before it"


class CheckedBatch(NamedTuple):
    """A batch, with the `reason` if it is damaged: `resume` is then where the next sound one begins, None: not in the
    page."""

    batch: Batch
    reason: str | None = None
    resume: int | None = None


def checked_batches(page: LogPage, *, is_crc_checked: bool) -> Iterator[CheckedBatch]:
    """Yield every sound batch of a page, and the first of every run of damaged ones."""
    batches, index = page.batches, 0
    end: int | None = None
    while index < len(batches):
        batch = batches[index]
        index += 1
        reason = find_defect(batch, page.data, is_crc_checked=is_crc_checked)
        reason = reason or _misplaced(batch, batches[index] if index < len(batches) else None, end)
        if reason is None:
            end = batch.end_offset
            yield CheckedBatch(batch)
            continue
        while index < len(batches) and not _follows(batches[index], page, end, is_crc_checked):
            index += 1
        yield CheckedBatch(batch, reason, batches[index].base_offset if index < len(batches) else None)


def _misplaced(batch: Batch, following: Batch | None, end: int | None) -> str | None:
    """Return why the offsets of a batch cannot be right; None when they ascend.

    Of two neighbours that overlap, the one that leaves a gap behind the batch before is wrong.
    """
    if end is None or batch.base_offset == end:
        return None
    if batch.base_offset < end:
        return _GOES_BACK
    is_over = following is not None and batch.base_offset < following.base_offset < batch.end_offset
    return _REACHES_OVER if is_over else None


def _follows(batch: Batch, page: LogPage, end: int | None, is_crc_checked: bool) -> bool:
    return find_defect(batch, page.data, is_crc_checked=is_crc_checked) is None and (
        end is None or batch.base_offset >= end
    )


def first_reachable(probe: Callable[[int], int | None], behind: int, hi: int) -> tuple[int, int] | None:
    """Return (offset to ask for, base offset found there) of the first batch that can be reached behind `behind`.

    `probe(offset)` returns the base offset of the batch that a fetch at `offset` finds; None when it finds none, as a
    broker looks for an offset from the nearest one in its index on, and damage in between stops it. None: there is
    no batch below `hi`.
    """
    lost, step, base = behind, 1, None
    while base is None:
        asked = min(lost + step, hi - 1)
        if asked <= lost:
            return None
        base, step = probe(asked), 2 * step
        if base is None:
            lost = asked
    best = (asked, base)
    while best[0] - lost > 1:
        middle = (lost + best[0]) // 2
        base = probe(middle)
        if base is None:
            lost = middle
        else:
            best = (middle, base)
    while best[1] - 1 > behind and (base := probe(best[1] - 1)) is not None and base < best[1]:
        best = (best[1] - 1, base)  # a batch is in the index by its last offset
    return best
