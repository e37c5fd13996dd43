"""Gather what certified windows found of keys that a store lacks now: their records and rows lie in few windows, which
are asked.

A bucket is judged first without them, and says in which windows its missing keys have records, by the key index. Their
rows may have been met without the record by windows before; and what this window handed over was judged by the ones
after it, one or more. The row of a record that is repeated was judged around the window with the record. Where any of
these is certified, the bucket is judged again with what that one found.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.keys import hash_hex
from makewhole.journal.history import older_results
from makewhole.journal.history.older_results import MET_FAR_AHEAD
from makewhole.journal.results import handover_keys
from makewhole.key_index.files import IndexFile, maybe_known
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.hops import Hop
from makewhole.tables.in_doubt import together
from makewhole_spark.carrier import Carrier
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult, met_by
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

ResultsByBucket = Mapping[str, Sequence[CertifiedResult]]


def certified_results(neighbours: NeighbouringWindows, hop: Hop, numbers: Collection[int]) -> ResultsByBucket:
    """Return the newest certified result of windows on a hop, by bucket; of this one that of a revision before."""
    if not numbers:
        return {}
    ours = neighbours.context.window
    results = older_results.certified_files(neighbours.journal, ours, hop, numbers)
    others = {result.number for result in results} - {ours.number}
    windows = {window.number: window for window in [*neighbours.windows.of_numbers(others), ours]}
    by_bucket: dict[str, list[CertifiedResult]] = {}
    for result in results:
        ranges = windows[result.number].ranges.get(hop.source, ()) if result.number in windows else ()
        for bucket in neighbours.own_buckets(result.files["verdicts_by_bucket"]):
            by_bucket.setdefault(bucket, []).append(
                CertifiedResult(
                    number=result.number,
                    revision=result.revision,
                    end=result.end,
                    files=VerdictFiles.of(hop.name, result.files, (result.source, result.target), bucket),
                    repaired=result.repaired,
                    ranges=tuple((part.partition, part.lo, part.hi) for part in ranges),
                    has_far_ahead=result.files.get(MET_FAR_AHEAD, 0) > 0,
                    met_alone=_files_of(result.files.get("met_alone") or {}, bucket),
                )
            )
    return by_bucket


def to_judge_again(
    _: Carrier, neighbours: NeighbouringWindows, tasks: Iterable[BucketTask], answers: Iterable[BucketAnswer]
) -> list[BucketTask]:
    """Return the tasks of buckets of which certified windows know missing keys, with what these found."""
    judged, hops = list(zip(tasks, answers, strict=True)), neighbours.context.pipeline.hops
    certified = {hop.name: certified_results(neighbours, hop, _numbers(neighbours, hop, answers)) for hop in hops}
    following = {hop.name: certified_results(neighbours, hop, _handed_to(neighbours, hop, answers)) for hop in hops}
    around = {hop.name: _ResultsAround.of(neighbours, hop, answers) for hop in hops}
    return [
        replace(
            task,
            second=replace(
                task.known_since,
                certified=tuple(certified[task.hop.name].get(task.bucket, ())),
                following=tuple(following[task.hop.name].get(task.bucket, ())),
                around=around[task.hop.name].of_windows(answer.repeated_from, task.bucket),
                knows_certified=True,
                looked_up=task.known_since.looked_up or answer.looked_up,
                kept=task.known_since.kept or answer.kept,
                in_doubt=together(task.known_since.in_doubt, answer.in_doubt),
            ),
        )
        for task, answer in judged
        if ((answer.recorded_in or answer.maybe_met) and certified[task.hop.name].get(task.bucket))
        or (answer.handed_on and following[task.hop.name].get(task.bucket))
        or any(around[task.hop.name].of_windows(answer.repeated_from, task.bucket).values())
    ]


@dataclass(frozen=True, kw_only=True)
class _ResultsAround:
    """Holds what certified windows found around those that have records of repeated keys: their `numbers`, nearest
    first, by that of such a window."""

    numbers: Mapping[int, Sequence[int]]
    results: ResultsByBucket

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, hop: Hop, answers: Iterable[BucketAnswer]) -> "_ResultsAround":
        recorded = {number for answer in answers if answer.hop == hop.name for number in answer.repeated_from}
        numbers = {number: numbers_around(neighbours, number) for number in sorted(recorded)}
        every = {number for numbers_of_one in numbers.values() for number in numbers_of_one}
        return cls(numbers=numbers, results=certified_results(neighbours, hop, every))

    def of_windows(self, recorded: Iterable[int], bucket: str) -> dict[int, tuple[CertifiedResult, ...]]:
        """Return what those around some windows found of a bucket, by the number of each of these."""
        of_bucket = {result.number: result for result in self.results.get(bucket, ())}
        return {
            number: tuple(of_bucket[around] for around in self.numbers[number] if around in of_bucket)
            for number in sorted(recorded)
        }


def numbers_around(neighbours: NeighbouringWindows, number: int) -> list[int]:
    """Return the numbers of the windows that may have judged the row of a record in a window, besides this one and that
    window itself, nearest first: the row has a time before that of its record by no more than `late` and the time that
    a key may wait, and after it by no more than `late`; and the windows right before and behind it."""
    pipeline, windows = neighbours.context.pipeline, neighbours.windows
    first, last = number - 1, number + 1
    start, end = windows.start_of(number), windows.start_of(number + 1)
    if start is not None:
        first = min(first, windows.number_ending_after(start - pipeline.late - pipeline.pending_max_age) or first)
    if end is not None:
        newest = windows.newest()
        reached = windows.number_ending_after(end + pipeline.late) or (newest.number if newest else last)
        last = max(last, reached)
    others = {*range(max(first, 1), last + 1)} - {number, neighbours.context.window.number}
    return sorted(others, key=lambda other: (abs(other - number), other))


def _numbers(neighbours: NeighbouringWindows, hop: Hop, answers: Iterable[BucketAnswer]) -> set[int]:
    """Return the numbers of the windows in which keys have records that the hop's store lacks, and of the certified
    ones that may have met their rows without the record: by the filters beside their files."""
    of_hop = [answer for answer in answers if answer.hop == hop.name]
    numbers = {number for answer in of_hop for number in answer.recorded_in}
    moments = [answer.maybe_met_since for answer in of_hop if answer.maybe_met_since is not None]
    if not moments:
        return numbers
    storage, ours = neighbours.context.storage, neighbours.context.window
    keys = {answer.bucket: storage.read_parquet([answer.maybe_met]) for answer in of_hop if answer.maybe_met}
    for window in older_results.certified_met_alone(neighbours.journal, ours, hop.name, min(moments)):
        for bucket, of_bucket in keys.items():
            files = [IndexFile(path=path, windows=()) for path in _files_of(window.files, bucket)]
            if of_bucket is not None and maybe_known(storage, files, met_by(of_bucket, window)).any():
                numbers.add(window.number)
    return numbers


def _handed_to(neighbours: NeighbouringWindows, hop: Hop, answers: Iterable[BucketAnswer]) -> set[int]:
    """Return the numbers of the windows to which keys of this one were handed over that the hop's store lacks now: the
    next one, and those after it as long as any of the keys was handed on."""
    journal, ours = neighbours.journal, neighbours.context.window
    paths = [answer.handed_on for answer in answers if answer.hop == hop.name and answer.handed_on is not None]
    handed = neighbours.context.storage.read_parquet(paths) if paths else None
    left: Sequence[str] = () if handed is None else handed.select(hash_hex()).to_series().to_list()
    numbers, number = set[int](), ours.number
    while left:
        number += 1
        numbers.add(number)
        left = handover_keys.handed_on(journal, ours, number, hop.name, left)
    return numbers


def _files_of(met_alone: Mapping[str, str], bucket: str) -> tuple[str, ...]:
    return files_of_bucket({name: (path,) for name, path in met_alone.items()}, bucket)
