"""Find the stores behind a topic, and whether a key of the topic passes the filters on the way to each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from makewhole.compensation.sources.sources import Position, Sources, decoded
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Finding
from makewhole.window.context import value_shape

Expected = Mapping[str, bool | None]
"""Store → whether it must hold the key; None: not known."""


def stores_behind(pipeline: Pipeline, point: str) -> dict[str, list[Sequence[Hop]]]:
    """Return the tables that are fed from a topic, directly or over further topics, with every way to each."""
    stores: dict[str, list[Sequence[Hop]]] = {}
    for hop in pipeline.readers_of(point):
        if can_look_up(pipeline.points[hop.target]):
            stores.setdefault(hop.target, []).append((hop,))
            continue
        for store, ways in stores_behind(pipeline, hop.target).items():
            stores.setdefault(store, []).extend((hop, *way) for way in ways)
    return stores


def expected_at_stores(pipeline: Pipeline, point: str, passes: Callable[[Hop], bool | None]) -> Expected:
    """Return for each store behind a topic whether it must hold a key. `passes` answers for hops that have a filter.

    The filter of a hop further down sees other records, so that nothing is known of it.
    """

    def leads(way: Sequence[Hop]) -> bool | None:
        known = [True if hop.where is None else passes(hop) if hop.source == point else None for hop in way]
        return False if False in known else None if None in known else True

    expected: dict[str, bool | None] = {}
    for store, ways in stores_behind(pipeline, point).items():
        answers = [leads(way) for way in ways]
        expected[store] = True if True in answers else None if None in answers else False
    return expected


class TopicRecords:
    """The records of duplicate keys in topics, to ask which filters they pass."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._pipeline = sources, sources.pipeline
        self._targets = {hop.name: hop.target for hop in sources.pipeline.hops}

    def load(self, findings: Iterable[Finding], load: Callable[[Mapping[str, Sequence[Position]]], None]) -> None:
        """Read the records of findings whose topic has a filter behind it."""
        wanted: dict[str, list[Position]] = {}
        for finding in findings:
            target = self._targets[finding.hop]
            if any(hop.where is not None for hop in self._pipeline.hops_from(target)):
                wanted.setdefault(target, []).extend(_positions(finding))
        load(wanted)

    def passes(self, finding: Finding, hop: Hop) -> bool | None:
        """Return whether a record of the key passes the filter of a hop from its topic; None: not known."""
        point = self._pipeline.topic(hop.source)
        positions = _positions(finding)
        records = [self._sources.find(point.name, position, finding.key) for position in positions]
        shape = value_shape(self._pipeline, point)
        excluded = [decoded(record, shape)["excluded_by"] or () for record in records if record is not None]
        if any(hop.name not in names for names in excluded):
            return True
        is_complete = len(excluded) == len(positions) >= finding.evidence["target_copies"]
        return False if is_complete else None


def copies_pass(copies: Iterable[Mapping[str, Any]], hop: Hop) -> bool:
    """Return whether these copies bring their key through the filter of a hop: one of an event, the latest version."""
    return copy_that_counts(copies, hop) is not None


def copy_that_counts(copies: Iterable[Mapping[str, Any]], hop: Hop) -> Mapping[str, Any] | None:
    """Return the copy of a key that counts behind a hop: of an event the first that passes its filter, else the latest
    version. None: no copy passes, or that version does not."""
    if hop.semantics is Semantics.UPSERT:
        latest = _latest_version(list(copies))
        in_order = [] if latest is None else [latest]
    else:
        in_order = sorted(copies, key=lambda copy: (copy["partition"], copy["offset"]))
    return next((copy for copy in in_order if hop.name not in (copy["excluded_by"] or ())), None)


def _latest_version(copies: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the version of the highest number, and of equal ones the last. A tombstone without a number ends those
    before it in its partition."""
    ends: dict[int, int] = {}
    for copy in copies:
        if copy["is_tombstone"] and copy["version"] is None:
            ends[copy["partition"]] = max(copy["offset"], ends.get(copy["partition"], -1))
    left = [copy for copy in copies if copy["offset"] >= ends.get(copy["partition"], -1)]
    return max(
        left,
        key=lambda copy: (copy["version"] is not None, copy["version"] or 0, copy["partition"], copy["offset"]),
        default=None,
    )


def _positions(finding: Finding) -> list[Position]:
    """Return the positions of a duplicate key's records in its topic, as far as the evidence names them."""
    evidence = finding.evidence
    places = [*evidence.get("repeated", {}).get("here", ()), *evidence.get("elsewhere", ())]
    numbers = [place.split(":") for place in places]
    return [(int(parts[0]), int(parts[1])) for parts in numbers if len(parts) == 2]
