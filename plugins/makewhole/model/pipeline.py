"""Describe what is reconciled: points joined by hops, as one pipeline file has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from makewhole.model.errors import RefusedError
from makewhole.model.gate import NO_TOLERANCE, Gate
from makewhole.model.hops import Hop, Reach, Remedy, Semantics
from makewhole.model.people.access import DagAccess
from makewhole.model.people.notices import Notify
from makewhole.model.points import (
    NEVER_WRITTEN,
    WRITTEN_IF_ANY,
    Point,
    Publish,
    TablePoint,
    TopicPoint,
    can_look_up,
    has_erasures,
    has_log,
)
from makewhole.model.retention import Keep
from makewhole.model.self_check.settings import SelfCheck
from makewhole.model.time_limits import DEFAULT_LIMITS, TimeLimits
from makewhole.model.value_types import places_with_units


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds over which a plan is refused as a whole. `share` is of the window's keys, 0..1."""

    actions: int = 10_000
    share: float = 0.01
    records_per_second: int = 2_000


GROUP_PREFIX = "group:"


@dataclass(frozen=True, kw_only=True)
class Approval:
    """The rule of approval: plans of more than `above_actions` actions wait for a person in `by` (empty: anybody who
    may), for `expires`.

    `by` holds user names, and names of groups behind `GROUP_PREFIX`. `four_eyes`: who asked for the run may not answer.
    """

    above_actions: int = 100
    by: tuple[str, ...] = ()
    expires: timedelta = timedelta(hours=4)
    four_eyes: bool = False


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One pipeline file. `compare` maps a column to its declared type; `start` is `earliest`, `latest` or a time;
    None: the beginning of the logs, and what older keys mean is not declared.

    `points` may name topics that no hop joins: those with `duplicates` are judged alone, and nothing is judged in those
    that compensation writes to. `until` ends the schedule: for a pipeline that is over. A step that meets a transient
    error is tried again for `retry_for`. `pending_max_age` is how long a key may be handed over from window to window.
    `late` is how far before a window rows of tables are looked for that came since the window before. `reach` is `LOG`
    where the file accepts that nothing upstream of a topic says what was sent to it. `history` is how far back the key
    index knows the keys of topics; None: for ever. `publish` are the topic points that are published. `mask` are the
    columns whose values are shown and kept as keyed digests alone. `notify` is what is sent to people, `access` which
    roles may run it, `keep` how long what is written is kept, `self_check` what is planted in it where makewhole checks
    itself by it: none decides anything.
    `filter_types` are those by which a window reads the columns of filters, `as_written` is the file's pipeline where
    this one is as a window reads it, `compare_of_file` its `compare` where that is of one hop
    (`makewhole.model.places.compared_columns`).
    """

    name: str
    points: Mapping[str, Point]
    hops: tuple[Hop, ...]
    description: str = ""
    schedule: str | None = None
    start: str | datetime | None = None
    until: datetime | None = None
    settle: timedelta = timedelta(minutes=5)
    pending_max_age: timedelta = timedelta(days=1)
    late: timedelta = timedelta(days=1)
    reach: Reach | None = None
    compare: Mapping[str, str] = field(default_factory=dict)
    gate: Gate = NO_TOLERANCE
    limits: Limits = Limits()
    approval: Approval = Approval()
    retry_for: timedelta = timedelta(hours=6)
    time_limits: TimeLimits = DEFAULT_LIMITS
    history: timedelta | None = field(default=None, metadata=WRITTEN_IF_ANY)
    publish: tuple[Publish, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    mask: tuple[str, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    notify: Notify | None = field(default=None, metadata=NEVER_WRITTEN)
    access: DagAccess | None = field(default=None, metadata=NEVER_WRITTEN)
    keep: Keep = field(default_factory=Keep, metadata=NEVER_WRITTEN)
    self_check: SelfCheck | None = field(default=None, metadata=NEVER_WRITTEN)
    filter_types: Mapping[str, str] = field(default_factory=dict, metadata=NEVER_WRITTEN)
    as_written: "Pipeline | None" = field(default=None, metadata=NEVER_WRITTEN)
    compare_of_file: Mapping[str, str] | None = field(default=None, metadata=NEVER_WRITTEN)

    def hop(self, name: str) -> Hop:
        """Return the hop of this name.

        Raises:
            RefusedError: the file has no such hop, or not any more.
        """
        named_hop = next((hop for hop in self.hops if hop.name == name), None)
        if named_hop is None:
            raise RefusedError(
                f"pipeline {self.name} has no hop {name} any more; put it back into its file until the window is closed"
            )
        return named_hop

    def place_of(self, name: str) -> str:
        """Return what distinguishes the place of a point: two points that are one table or topic have the same."""
        return name if (point := self.points.get(name)) is None else point.identity or point.place

    @property
    def column_places(self) -> dict[str, dict[str, str]]:
        """The places of columns by point, of those that have any under another name."""
        places = {
            name: places_with_units(point.columns, point.units if has_log(point) else ())
            for name, point in self.points.items()
        }
        return {name: of_point for name, of_point in places.items() if of_point}

    def topic(self, name: str) -> TopicPoint:
        """Return a point that has a log."""
        point = self.points[name]
        assert has_log(point), name
        return point

    def table(self, name: str) -> TablePoint:
        """Return a point whose rows are looked up."""
        point = self.points[name]
        assert can_look_up(point), name
        return point

    def hops_into(self, name: str) -> tuple[Hop, ...]:
        """Return the hops that lead to the place of a point, whatever it is called at their ends, in file order."""
        place = self.place_of(name)
        return tuple(hop for hop in self.hops if self.place_of(hop.target) == place)

    def version_unit(self, hop: Hop) -> Decimal:
        """Return how far apart two versions are at least that the ends of a hop distinguish."""
        ends = (self.points[hop.source], self.points[hop.target])
        return max((point.version_unit for point in ends if can_look_up(point)), default=Decimal(0))

    def forgets_records_of(self, target: str) -> bool:
        """Return whether rows of a point may belong to records of topics that the key index knows no more
        (`history`)."""
        feeding = (self.points.get(hop.source) for hop in self.hops_into(target))
        return self.history is not None and any(has_log(point) for point in feeding)

    def indexed_points(self) -> tuple[str, ...]:
        """Return the points whose keys the key index has: topics, and ledgers that feed a table, or a place beside
        another source. Of events their rows may be purged, and their keys are known for ever; of versions an older one
        may come later; and a file may name a source no more, whose rows stay."""
        points: dict[str, None] = {}
        for hop in self.hops:
            names = [name for name in (hop.source, hop.target) if has_log(self.points.get(name))]
            is_asked = can_look_up(self.points.get(hop.target)) or len(self.hops_into(hop.target)) > 1
            points |= dict.fromkeys([*names, *([hop.source] if is_asked else [])])
        return (*points, *(point.name for point in self.topics_alone))

    def hops_from(self, point: str) -> tuple[Hop, ...]:
        """Return the hops whose source is `point`, in file order."""
        return tuple(hop for hop in self.hops if hop.source == point)

    def readers_of(self, point: str) -> tuple[Hop, ...]:
        """Return the hops that lead from the place of a point, whatever it is called at their ends, in file order."""
        place = self.place_of(point)
        return tuple(hop for hop in self.hops if self.place_of(hop.source) == place)

    def hops_behind(self, point: str, *, follows: Callable[[Hop], bool] | None = None) -> tuple[Hop, ...]:
        """Return the hops that lead on from the place of a point, over further topics, each once, the near ones first.
        `follows`: which of them are gone along; None: all."""
        hops = dict[str, Hop]()
        left = [point]
        while left:
            near = [hop for hop in self.readers_of(left.pop(0)) if hop.name not in hops]
            near = near if follows is None else list(filter(follows, near))
            hops |= {hop.name: hop for hop in near}
            left += [hop.target for hop in near if has_log(self.points[hop.target])]
        return tuple(hops.values())

    def from_here_on(self, point: str) -> frozenset[str]:
        """Return a point and every point behind it, also where one table is the end of a hop by one name and the start
        of the next by another; a filter may keep a key from them, or not."""
        points, left = {point}, [point]
        while left:
            place = self.place_of(left.pop())
            near = [hop.target for hop in self.hops if self.place_of(hop.source) == place and hop.target not in points]
            points.update(near)
            left += near
        return frozenset(points)

    def joined_points(self) -> tuple[tuple[str, ...], ...]:
        """Return the groups of points that hops join, directly or through others: their keys are the same. A topic
        that no hop joins and that is judged is one by itself."""
        groups: list[list[str]] = [[point.name] for point in self.topics_alone]
        for hop in self.hops:
            touched = [group for group in groups if hop.source in group or hop.target in group]
            names = dict.fromkeys([name for group in touched for name in group] + [hop.source, hop.target])
            groups = [group for group in groups if group not in touched] + [list(names)]
        return tuple(tuple(group) for group in groups)

    def stores_at(self, point: str) -> tuple[TablePoint, ...]:
        """Return the store that a point is, or all stores that are fed from it, directly or over further points."""
        if can_look_up(here := self.points[point]):
            return (here,)
        ends = dict.fromkeys(hop.target for hop in self.hops_behind(point))
        return tuple(store for store in map(self.points.__getitem__, ends) if can_look_up(store))

    def has_erasures(self, topic: str) -> bool:
        """Return whether the tombstones of a topic point say of a store behind it which keys were deleted on
        purpose."""
        return has_erasures(self.points.values(), topic)

    def overwrites(self, hop: Hop) -> bool:
        """Return whether what reads a hop is known to overwrite the row of a key instead of adding one."""
        target = self.points[hop.target]
        return hop.semantics is Semantics.UPSERT or (can_look_up(target) and target.version is not None)

    def tables_that_add(self, topic: str) -> frozenset[str]:
        """Return the tables behind a topic, at any distance, whose loaders are not known to overwrite: a record that
        comes a second time adds a row there."""
        ends = {hop.target for hop in self.hops_behind(topic, follows=lambda hop: not self.overwrites(hop))}
        return frozenset(name for name in ends if can_look_up(self.points[name]))

    def redelivery_readers(self, hop: Hop) -> tuple[Hop, ...]:
        """Return the hops whose loaders read what a hop redelivers, itself among them, in file order: those from the
        topic that it goes to, and those that have it as their replay topic."""
        place = self.place_of(hop.redeliver_to or hop.source)
        readers = (reader for reader in self.hops if has_log(self.points[reader.source]))
        return tuple(
            reader
            for reader in readers
            if reader == hop or place in map(self.place_of, filter(None, (reader.source, reader.redeliver_to)))
        )

    def places_written(self, hop: Hop, remedy: Remedy) -> frozenset[str]:
        """Return the places of the tables whose rows a remedy of a hop changes or adds: by itself, or by the loaders
        that what it sends comes to, over further topics, too. One that the hop names under `despite` adds none."""
        match remedy:
            case Remedy.QUARANTINE | Remedy.UPSERT:
                ends = [hop.target]
            case Remedy.PRODUCE:
                ends = [other.target for other in self.hops_behind(hop.target)]
            case Remedy.REDELIVER:
                ends = [other.target for reader in self.redelivery_readers(hop) for other in self._loaded(hop, reader)]
            case _:
                ends = []
        return frozenset(self.place_of(name) for name in ends if can_look_up(self.points[name]))

    def _loaded(self, hop: Hop, reader: Hop) -> list[Hop]:
        """Return the hops by which a record that a hop redelivers goes on from one reader."""
        loaded = [reader, *self.hops_behind(reader.target)]
        is_harmless = reader != hop and reader.consumer_group in hop.redeliver_despite
        return [other for other in loaded if self.overwrites(other)] if is_harmless else loaded

    def ordered_points(self) -> tuple[Point, ...]:
        """Return the points that are judged in the order their snapshots are taken: every hop's source before its
        target, then topics that no hop joins."""
        names: list[str] = []
        for hop in self.hops:
            for name in (hop.source, hop.target):
                if name not in names:
                    names.append(name)
        return (*(self.points[name] for name in names), *self.topics_alone)

    @property
    def topics_alone(self) -> tuple[TopicPoint, ...]:
        """The topics that no hop joins and whose records are held to each other, in file order."""
        joined = {name for hop in self.hops for name in (hop.source, hop.target)}
        points = (point for name, point in self.points.items() if name not in joined)
        return tuple(point for point in points if has_log(point) and point.duplicates is not None)

    @property
    def judged_names(self) -> tuple[str, ...]:
        """The names of what a window is judged on, each of which has a result: hops, and topics alone."""
        return (*(hop.name for hop in self.hops), *(point.name for point in self.topics_alone))
