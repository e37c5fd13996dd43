"""Find the readers that a redelivered record reaches beside the point that lacks it: none gets it twice implicitly.

A topic is read by every hop that starts from it, and by consumer groups that the pipeline does not know. A reader that
overwrites takes a record again without harm, and so does one whose group the hop names under `despite`. Every other one
is asked for the key before the record is sent, and not known is no.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from makewhole.kafka.topic_readers import topic_readers
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.errors import PermanentError
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import GAPS, Finding, Verdict


@dataclass(frozen=True, kw_only=True)
class Readers:
    """The consumer groups that read topics, by point. `silent`: points whose groups cannot be listed, with the
    reason."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


NO_READERS = Readers()


def read_readers(
    pipeline: Pipeline, connections: Mapping[str, Connection], kinds: Iterable[tuple[str, Verdict]]
) -> Readers:
    """Ask the brokers which groups read the topics that records of these kinds of findings (hop, verdict) would be sent
    back to.

    Raises:
        TransientError: the brokers do not answer.
    """
    groups, silent = {}, {}
    for name in sorted(_sources_written_again(pipeline, kinds)):
        point = pipeline.points[name]
        connection = connections.get(point.connection)
        if not has_log(point) or connection is None:
            silent[name] = f"there is no connection {point.connection}"
            continue
        try:
            groups[name] = tuple(reader.group for reader in topic_readers(kafka_of(connection), point.topic))
        except PermanentError as error:
            silent[name] = str(error)
    return Readers(groups=groups, silent=silent)


def _sources_written_again(pipeline: Pipeline, kinds: Iterable[tuple[str, Verdict]]) -> set[str]:
    hops = {hop.name: hop for hop in pipeline.hops}
    return {
        hops[name].source
        for name, verdict in kinds
        if verdict in GAPS
        and name in hops
        and hops[name].remedies.answer_to(verdict) is Remedy.REDELIVER
        and hops[name].redeliver_to is None
    }


class Redelivery:
    """Find the readers of redelivered records, by the pipeline, the findings of a window and the answers of the
    brokers."""

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding], readers: Readers) -> None:
        self._pipeline, self._readers = pipeline, readers
        self._missing = {(finding.hop, finding.key_hash) for finding in findings if finding.verdict is Verdict.MISSING}

    def reach(self, hop: Hop, finding: Finding) -> set[str] | Refusal:
        """Return the points that must lack the key when a finding's record is redelivered, or why it is not."""
        known = self.known_groups(hop)
        if hop.redeliver_to is None:
            unknown = self._unknown_groups(hop, known)
            if unknown is not None:
                return unknown
        once: set[str] = set()
        for other in self._pipeline.redelivery_readers(hop):
            is_itself = other == hop
            if self._pipeline.overwrites(other) or (not is_itself and other.consumer_group in hop.redeliver_despite):
                continue
            if not is_itself and self._may_have(other, finding):
                return Refusal(
                    RefusalCode.TWICE,
                    f"{other.target} is filled from {hop.redeliver_to or hop.source}, too, and is not known to "
                    f"lack this key; {_despite(hop, [other.consumer_group])}",
                )
            if is_itself and finding.verdict is not Verdict.MISSING:
                continue
            once |= {other.target, *self._pipeline.tables_that_add(other.target)}
        return once

    def known_groups(self, hop: Hop) -> set[str] | None:
        """Return the groups that may read what is sent back to a hop's source; None: it goes to a replay topic."""
        if hop.redeliver_to is not None:
            return None
        of_hops = {reader.consumer_group for reader in self._pipeline.readers_of(hop.source)} - {None}
        return {*(group for group in of_hops if group is not None), *hop.redeliver_despite}

    def _unknown_groups(self, hop: Hop, known: set[str] | None) -> Refusal | None:
        if hop.source in self._readers.silent:
            return Refusal(
                RefusalCode.NOT_KNOWN,
                f"the groups that read {hop.source} cannot be listed: {self._readers.silent[hop.source]}; "
                "use upsert or a replay topic",
            )
        unknown = [group for group in self._readers.groups.get(hop.source, ()) if group not in (known or ())]
        return unknown_readers(hop, unknown) if unknown else None

    def _may_have(self, other: Hop, finding: Finding) -> bool:
        """Return whether another reader is a topic that may have the record: a log cannot be asked for a key."""
        is_topic = has_log(self._pipeline.points[other.target])
        return is_topic and (other.name, finding.key_hash) not in self._missing


def loaders_to_pass(pipeline: Pipeline, hop: Hop, remedy: Remedy) -> list[str]:
    """Return the hops whose loaders must be past a record before it is sent again, or a row is written in its place:
    those that add a row for it, and of which the file says what shows how far they are."""
    readers = pipeline.redelivery_readers(hop) if remedy is Remedy.REDELIVER else (hop,)
    return [
        other.name
        for other in readers
        if pipeline.place_of(other.source) == pipeline.place_of(hop.source)
        and other.reader is not None
        and not pipeline.overwrites(other)
        and (other == hop or other.consumer_group is None or other.consumer_group not in hop.redeliver_despite)
    ]


def loaders_of_replays(pipeline: Pipeline, hop: Hop, remedy: Remedy) -> list[str]:
    """Return the hops whose loaders must be past what earlier plans sent of a key before its record is sent again, or a
    row is written in its place: those that add a row where this one would be, whether or not the file says what shows
    how far they are."""
    readers = pipeline.redelivery_readers(hop) if remedy is Remedy.REDELIVER else ()
    into_store = (other for other in pipeline.hops_into(hop.target) if has_log(pipeline.points[other.source]))
    return [
        other.name
        for other in {reader.name: reader for reader in (*readers, *into_store)}.values()
        if not pipeline.overwrites(other)
        and (other == hop or other.consumer_group is None or other.consumer_group not in hop.redeliver_despite)
    ]


def unknown_readers(hop: Hop, groups: Sequence[str]) -> Refusal:
    """Return why nothing is redelivered to a hop's source that groups read which the pipeline does not know."""
    listed = ", ".join(groups)
    is_one = len(groups) == 1
    return Refusal(
        RefusalCode.TWICE,
        f"{'group' if is_one else 'groups'} {listed} {'reads' if is_one else 'read'} {hop.source}, and nothing "
        f"says what a second copy does there; write 'consumer_group: {groups[0]}' on the hop that it loads, or "
        f"{_despite(hop, groups)}",
    )


def _despite(hop: Hop, groups: Sequence[str | None]) -> str:
    """Return the lines to write where others may read a record a second time."""
    named = [group for group in groups if group is not None]
    if not named:
        return f"use upsert, or a replay topic, on hop {hop.name}"
    to = hop.redeliver_to or "source"
    line = f"'redeliver: {{to: {to}, despite: [{', '.join([*hop.redeliver_despite, *named])}]}}'"
    return f"{line} on hop {hop.name} if it does no harm, or use upsert or a replay topic"
