"""Whether a log still is the one that was seen: known from leader epochs, never by offsets, which are used again.

Two logs of a partition that have a record of the same leader epoch at the same offset agree on everything below it
(KIP-101, KIP-279). So it is enough to remember where each epoch ended and to ask the leader where it ends now: less
than what was seen means that the difference was truncated, whatever is at those offsets today (KIP-320).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TypeVar

from makewhole.kafka.offsets import EpochEnd
from makewhole.model.window import PartitionRange

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, end offset) of consecutive pieces of a log, both ascending; the last may hold no record."""

Ask = Callable[[int], EpochEnd | None]
"""Where an epoch ends, or the last one before it that the leader knows; None when it knows none so early."""

_Found = TypeVar("_Found")
Questions = Generator[int, EpochEnd | None, _Found]
"""The epochs of a partition that are asked for, one after the other, and what is known when all have answers."""


def answer(ask: Ask, questions: Questions[_Found]) -> _Found:
    """Return what is known of a partition once its questions have their answers."""
    try:
        epoch = next(questions)
        while True:
            epoch = questions.send(ask(epoch))
    except StopIteration as end:
        result: _Found = end.value
        return result


def answer_all(
    ask: Callable[[Mapping[int, int]], Mapping[int, EpochEnd | None]], questions: Mapping[int, Questions[_Found]]
) -> dict[int, _Found]:
    """Return what `answer` does of many partitions: the next questions of all of them are asked at once."""
    results: dict[int, _Found] = {}
    answers: Mapping[int, EpochEnd | None] = {}
    waiting = dict(questions)
    is_first = True
    while waiting:
        epochs: dict[int, int] = {}
        for partition, own in waiting.items():
            try:
                epochs[partition] = next(own) if is_first else own.send(answers[partition])
            except StopIteration as end:
                results[partition] = end.value
        waiting = {partition: waiting[partition] for partition in epochs}
        answers, is_first = ask(epochs) if epochs else {}, False
    return results


def epochs_of(ask: Ask, newest: int, lo: int, hi: int) -> Epochs:
    """Return what `ask_epochs` finds."""
    return answer(ask, ask_epochs(newest, lo, hi))


def ask_epochs(newest: int, lo: int, hi: int) -> Questions[Epochs]:
    """Find the leader epochs of offsets `[lo, hi)`; `newest` is the epoch of the leader that reported `hi`.

    `lo` must not be below the log's start, where epochs are forgotten.
    """
    epochs, epoch = [(newest, hi)], newest
    while epoch > 0:
        before = yield epoch - 1
        if before is None or before.end_offset <= lo:
            break
        epochs.append((before.epoch, min(before.end_offset, hi)))
        epoch = before.epoch
    return tuple(reversed(epochs))


def seen_epochs(ranges: Iterable[PartitionRange]) -> Epochs:
    """The epochs of the ranges of one partition, oldest first, as the log was when the last of them was frozen."""
    seen: Epochs = ()
    for part in ranges:
        if part.leader_epochs:
            first = part.leader_epochs[0][0]
            below = tuple((epoch, min(end, part.lo)) for epoch, end in seen if epoch < first)
            seen = below + part.leader_epochs
    return seen


def _ask_earlier_ends(seen: Iterable[tuple[int, int]]) -> Questions[list[int]]:
    """Find the ends of epochs that ended later when they were seen. Brokers that were restored from a backup use the
    numbers of epochs again, for other records."""
    ends = []
    for epoch, end in seen:
        there = yield epoch
        if there is not None and there.end_offset < end:
            ends.append(there.end_offset)
    return ends


def divergence(ask: Ask, seen: Epochs, start: int) -> int:
    """Return what `ask_divergence` finds."""
    return answer(ask, ask_divergence(seen, start))


def ask_divergence(seen: Epochs, start: int) -> Questions[int]:
    """Find the offset up to which the log still is the one that was seen: its end, when nothing was truncated.

    `start` is where `seen` begins; it is the answer when nothing at all is left of it.
    """
    agreed = seen[-1][1]
    left = list(seen)
    while left:
        epoch, end = left.pop()
        agreed = min(agreed, end)
        there = yield epoch
        if there is None:
            break
        agreed = min(agreed, there.end_offset)
        if there.epoch == epoch:
            earlier = yield from _ask_earlier_ends(left)
            return max(start, min([agreed, *earlier]))
        left = [entry for entry in left if entry[0] <= there.epoch]
    return start
