"""Hold the result of a dry run: counts by kind of action and target, and a few actions in full."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from makewhole.compensation.preview.table_lock import table_lock_sentence
from makewhole.kafka.replay_records import Header
from makewhole.kafka.topic_readers import ReadingGroup
from makewhole.model.actions import Action
from makewhole.model.plan import Plan
from makewhole.model.refusal import Refusal
from makewhole.model.text import counted
from makewhole.tables.row_change import RowChange


class Forecast(StrEnum):
    """The outcome that an action would have now."""

    WOULD = "would be done"
    REFUSED = "refused"
    WAITS = "waits"
    """An earlier action is about the same key."""
    DONE = "done already"


@dataclass(frozen=True, kw_only=True)
class DryRunPart:
    """The actions of one kind at one target. `forecasts` add up to `actions`; `reasons` counts the refusals,
    `payload_from` the actions by the source of their payload."""

    remedy: str
    target: str
    place: str
    actions: int
    forecasts: Mapping[Forecast, int]
    reasons: Mapping[Refusal, int]
    payload_from: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class TableEffects:
    """The effects of writing a table beside the rows themselves.

    `left_empty`: columns that nothing fills in rows that are inserted, with the number of these rows. `locked_chunks`:
    chunks of at most `chunk_actions` actions during which other writers of the table wait.
    """

    target: str
    place: str
    left_empty: Mapping[str, int]
    locked_chunks: int
    chunk_actions: int

    def sentences(self) -> Iterator[str]:
        """Yield what people should know before they approve."""
        for column, rows in self.left_empty.items():
            yield (
                f"{self.target} ({self.place}): {column} stays empty in {counted(rows, 'inserted row')}, as `leave` of "
                "the hop says"
            )
        if self.locked_chunks:
            yield table_lock_sentence(f"{self.target} ({self.place})", self.locked_chunks, self.chunk_actions)


@dataclass(frozen=True, kw_only=True)
class ReadingSink:
    """Name what loads a store from a topic and keeps its own progress, as `reader` names it. `group`: that of its hop,
    whose offsets in Kafka are a copy. `standing`: how far it is; None: that cannot be read, `silent` says why.
    `unknown`: why its progress says nothing of some partitions."""

    hop: str
    reader: str
    group: str | None
    standing: ReadingGroup | None
    unknown: tuple[str, ...] = ()
    silent: str | None = None


@dataclass(frozen=True, kw_only=True)
class TopicEffects:
    """The readers of the records that are sent to a topic. `silent`: why they are not known; None: `groups` are those
    with an offset there, but for those of `sinks`, which keep their own progress."""

    target: str
    place: str
    groups: tuple[ReadingGroup, ...] = ()
    sinks: tuple[ReadingSink, ...] = ()
    silent: str | None = None

    def sentences(self) -> Iterator[str]:
        """Yield what people should know before they approve."""
        if self.silent is not None:
            yield f"{self.target} ({self.place}): which groups read it is not known: {self.silent}"
        elif not self.groups and not self.sinks:
            yield f"{self.target} ({self.place}): no consumer group has an offset there; who reads it is not known"
        for reader in self.groups:
            unread = f", no offset in {counted(reader.unread, 'partition')}" if reader.unread else ""
            yield f"{self.target} ({self.place}) is read by group {reader.group}, {_behind(reader)}{unread}"
        for sink in self.sinks:
            yield f"{self.target} ({self.place}) is read by {_sink_text(sink)}"


def _sink_text(sink: ReadingSink) -> str:
    """Return what loads a store, and how far behind it is by its own progress."""
    group = "" if sink.group is None else f", whose group is {sink.group}"
    if sink.standing is None:
        return f"{sink.reader}{group}; how far behind is not known: {sink.silent}"
    unknown = f"; {'; '.join(sink.unknown)}" if sink.unknown else ""
    if sink.unknown and not sink.standing.standing and not sink.standing.out_of_range:
        return f"{sink.reader}{group}; how far behind is not known: {'; '.join(sink.unknown)}"
    return f"{sink.reader}{group}, {_behind(sink.standing)}{unknown}"


def _behind(reader: ReadingGroup) -> str:
    """Return how many records a group has before it; offsets where they were not counted, which may hold fewer. An
    offset that the log does not have says nothing."""
    known = f"at most {reader.lag:,} behind" if reader.records is None else f"{reader.records:,} behind"
    if not reader.out_of_range:
        return known
    places = ", ".join(
        f"offset {outside.committed} of partition {partition}, whose log {outside.log_text}"
        for partition, outside in sorted(reader.out_of_range.items())
    )
    others = f"; in the others it is {known}" if reader.standing else ""
    return (
        f"how far behind is not known: it stands at {places}, and will read what its auto.offset.reset says "
        f"(group_out_of_range){others}"
    )


@dataclass(frozen=True, kw_only=True)
class RecordToSend:
    """A record as it would be sent. `partition` None: the partitioner's choice; `timestamp_ms` None: the moment of
    sending. `fields`: names at the top of a JSON object; None: the value is no object."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp_ms: int | None
    fields: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One action and its forecast. `refusal` of one that is refused; `shown`: its change of a table, or the record that
    it would send."""

    action: Action
    forecast: Forecast
    refusal: Refusal | None
    shown: RowChange | RecordToSend

    @property
    def reason(self) -> str | None:
        """Return why it would not be done now; None: it would, or is done already."""
        if self.forecast is Forecast.WAITS:
            return "an earlier action is about the same key: this one is judged when that is done"
        return None if self.refusal is None else str(self.refusal)


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The forecast of a plan. `stopped_by`: the reason why the plan as a whole would not start now; None: it would.
    `risks`: what people should know of the plan as a whole before they approve it."""

    plan: Plan
    stopped_by: str | None
    parts: tuple[DryRunPart, ...]
    samples: tuple[Sample, ...]
    tables: tuple[TableEffects, ...] = ()
    risks: tuple[str, ...] = ()
    topics: tuple[TopicEffects, ...] = ()

    def count(self, forecast: Forecast) -> int:
        """Return the number of actions with this forecast."""
        return sum(part.forecasts[forecast] for part in self.parts)
