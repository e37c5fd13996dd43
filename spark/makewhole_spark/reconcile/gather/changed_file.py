"""Gather what other windows knew by another pipeline file: other filters, other columns to compare, other hops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.compute.buckets import shares_keys
from makewhole.compute.indexed_keys.hop_filters import KnownFilters, changed_filters
from makewhole.journal import windows
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, standing_runs
from makewhole.journal.results.hop_results import first_of_hop, hops_before
from makewhole.key_index.files import IndexFile
from makewhole.model.hops import Hop
from makewhole.model.places.compared_columns import as_compared_on, compared_everywhere, compared_in
from makewhole.model.points import can_look_up
from makewhole.model.value_types import read_at
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.task import FileChanges, FormerCompare, FormerSource, HopSince
from makewhole_spark.reconcile.bucket.window_files import FilesOfWindows
from makewhole_spark.reconcile.gather.ledger_files import reached_windows
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class _RemovedSource:
    """The runs of the key index for a source that led to a hop's target in the windows before, and does not now; and
    the compared columns, as the newest of these windows read them there."""

    runs: Sequence[IndexedRun]
    compared: Mapping[str, str]

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, hop: Hop, point: str) -> "_RemovedSource":
        context, journal = neighbours.context.as_compared_on(hop), neighbours.journal
        topic = IndexedTopic(pipeline=context.pipeline.name, point=point)
        runs = standing_runs(journal, topic, besides=context.window.number)
        newest = max((number for run in runs for number in run.windows), default=None)
        window = None if newest is None else windows.last_judged(journal, context.pipeline.name, newest)
        columns = {} if window is None else windows.configuration(journal, window).get("columns", {})
        of_point = {name: places for name, places in columns.items() if name == point}
        return cls(runs=runs, compared=compared_in(context.pipeline, of_point))

    def files(self, bucket: str, number: int) -> tuple[IndexFile, ...]:
        """Return the files of a bucket, with the windows before the one of this number."""
        held = (
            IndexFile(path=path, windows=tuple(at for at in run.windows if at < number))
            for run in self.runs
            for name, path in run.files.items()
            if shares_keys(name, bucket)
        )
        return tuple(file for file in held if file.windows)


@dataclass(frozen=True, kw_only=True)
class ChangesOfHop:
    """Hold what other windows knew of a hop by another pipeline file; see `FileChanges`."""

    number: int
    compare: FormerCompare | None
    since: HopSince | None
    removed: Sequence["_RemovedSource"]
    under_other_filters: FilesOfWindows
    without_hop: FilesOfWindows

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, hop: Hop) -> "ChangesOfHop":
        others, without = _with_another_file(neighbours, hop)
        return cls(
            number=neighbours.context.window.number,
            compare=_former_compare(neighbours, hop),
            since=_hop_since(neighbours, hop),
            removed=[_RemovedSource.of(neighbours, hop, point) for point in _former_sources(neighbours, hop)],
            under_other_filters=others,
            without_hop=without,
        )

    def in_bucket(self, bucket: str) -> FileChanges:
        """Return what is known of a bucket."""
        return FileChanges(
            former_compare=self.compare,
            former_sources=tuple(
                FormerSource(files=files, compared=source.compared)
                for source in self.removed
                if (files := source.files(bucket, self.number))
            ),
            hop_since=self.since,
            under_other_filters=self.under_other_filters.in_bucket(bucket),
            without_hop=self.without_hop.in_bucket(bucket),
        )


def _former_compare(neighbours: NeighbouringWindows, hop: Hop) -> FormerCompare | None:
    """Return what windows before compared, where it is other than now and a ledger is at the hop's source: of what
    other windows read of a topic no value is known then."""
    context = neighbours.context
    if not can_look_up(context.pipeline.points[hop.source]):
        return None
    file = context.pipeline.as_written or context.pipeline
    now = compared_everywhere(as_compared_on(file, hop))
    former = windows.compared_otherwise(neighbours.journal, context.window, hop.name, now)
    if former is None:
        return None
    until, before = former
    alike = [name for name, read in before.items() if read_at(read) == read_at(now.get(name, read))]
    return FormerCompare(until=until, columns=tuple(sorted(alike)))


def _former_sources(neighbours: NeighbouringWindows, hop: Hop) -> list[str]:
    """Return the sources that led to a hop's target in the windows before, and do not now."""
    context = neighbours.context
    pipeline, window = context.pipeline, context.window
    place = pipeline.place_of(hop.target)
    known = hops_before(neighbours.journal, window)
    led = {source for source, target in known if target in pipeline.points and pipeline.place_of(target) == place}
    return sorted(led - {leading.source for leading in pipeline.hops_into(hop.target)})


def _hop_since(neighbours: NeighbouringWindows, hop: Hop) -> HopSince | None:
    """Return since when windows have a hop; None where the first one had it."""
    window = neighbours.context.window
    first = first_of_hop(neighbours.journal, window.pipeline, hop.name)
    number = window.number if first is None else min(first, window.number)
    start = window.start if number == window.number else neighbours.windows.start_of(number)
    return None if number == 1 or start is None else HopSince(number=number, start=start)


def _with_another_file(neighbours: NeighbouringWindows, hop: Hop) -> tuple[FilesOfWindows, FilesOfWindows]:
    """Return the files of a ledger at a hop's source in the windows whose rows it was read for again: of those that
    knew another filter of the hop, and of those that did not have the hop."""
    context, journal = neighbours.context, neighbours.journal
    if not can_look_up(context.pipeline.points[hop.source]):
        return FilesOfWindows(), FilesOfWindows()
    reached = reached_windows(neighbours, hop.source)
    before = [(window, KnownFilters.from_document(windows.configuration(journal, window))) for window in reached]
    others = [window for window, filters in before if hop.name in changed_filters(context.pipeline, filters)]
    without = [window for window, filters in before if hop.name not in filters.texts]
    return neighbours.files_by_bucket(hop.source, others), neighbours.files_by_bucket(hop.source, without)


def knew_another_filter(neighbours: NeighbouringWindows, hop: Hop, window: Window) -> bool:
    """Return whether a hop has a filter now and a revision of another window knew another one, or none."""
    if hop.where is None:
        return False
    before = KnownFilters.from_document(windows.configuration(neighbours.journal, window))
    return hop.name in changed_filters(neighbours.context.pipeline, before)
