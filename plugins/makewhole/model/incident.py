"""Describe what happened to a topic's log itself, to the group that reads it, or to a table, as far as it bears on a
window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from makewhole.model.hops import Reach
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import Duplicates


class IncidentKind(StrEnum):
    """The kinds of incident. Each says for itself whether the window can still be proven."""

    TRUNCATED = "truncated"  # offsets that were seen are gone, or hold other records now
    TOPIC_RECREATED = "topic_recreated"  # the same name, another topic id
    EXPIRED = "expired"  # deleted (retention, DeleteRecords) before this window could read them
    LEADER_CHANGED = "leader_changed"  # records of the window were written under several leader epochs
    BEGINNING_GONE = "beginning_gone"  # offsets were deleted before the first window: judging begins behind them
    BASELINE_UNKNOWN = "baseline_unknown"  # keys older than a log that begins at offset 0: only `start:` decides
    PARTITIONS_ADDED = "partitions_added"
    OPEN_TRANSACTION = "open_transaction"  # holds the stable offset at `lo`: the window ends there
    HANGING_TRANSACTION = "hanging_transaction"  # the same, and no coordinator will ever end it (KIP-664)
    GROUP_UNKNOWN = (
        "group_unknown"  # the group has committed no offset where records wait: nothing distinguishes late from lost
    )
    GROUP_OUT_OF_RANGE = "group_out_of_range"  # the group has committed an offset that the log does not have
    PROGRESS_UNKNOWN = "progress_unknown"  # the sink's own progress says nothing of a partition where records wait
    PROGRESS_OUT_OF_RANGE = "progress_out_of_range"  # it has an offset that the log does not have
    CONSUMER_STALLED = "consumer_stalled"  # the group has not moved since the last window, and records wait
    SLICE_GROWN = "slice_grown"  # rows came to a table with times before those that `late` reaches
    SLICE_SHRUNK = "slice_shrunk"  # rows that an earlier window had counted in a table are gone
    SLICE_FIRST_COUNTED = "slice_first_counted"  # the rows of an earlier window's slice had not been counted
    FILTER_CHANGED = "filter_changed"  # a hop has another `where` than in the windows before
    NEVER_COMPARED = "never_compared"  # of a compared column neither end of a hop has ever had a value
    NO_TIME_INDEX = "no_time_index"  # no index of a large table begins with its time column
    TIMES_AHEAD = "times_ahead"  # rows of a table have times that no window reaches
    PREPARED_TRANSACTION = "prepared_transaction"  # neither committed nor rolled back, it may hold keys of a store
    REPEATED_KEYS = "repeated_keys"  # how many keys have several records in a topic that nothing feeds
    VALUES_NOT_LOOKED_AT = "values_not_looked_at"  # no index finds the rows of known keys in a store
    UNREADABLE_FILES = "unreadable_files"  # files of a dataset cannot be read: what they hold is not known
    LEFT_OVER_FILES = "left_over_files"  # files beside those of a dataset, which no reader takes, for a long time


class Doubt(StrEnum):
    """The reasons why a change of leader may have taken acknowledged records along."""

    NOT_LOOKED_AT = "not_looked_at"  # found by a version that did not look
    FEW_COPIES = "few_copies"  # acks=all is given when one replica alone has the record
    UNCLEAN_ELECTION = "unclean_election"  # a replica that lags may lead
    SETTINGS_UNKNOWN = "settings_unknown"
    ACKS_UNKNOWN = "acks_unknown"  # records without a producer id: with what acks they were sent is not known
    NUMBERS_MISSING = "numbers_missing"  # the numbering of a producer has a gap


_UNPROVEN = (
    IncidentKind.HANGING_TRANSACTION,
    IncidentKind.BASELINE_UNKNOWN,
    IncidentKind.GROUP_UNKNOWN,
    IncidentKind.GROUP_OUT_OF_RANGE,
    IncidentKind.PROGRESS_UNKNOWN,
    IncidentKind.PROGRESS_OUT_OF_RANGE,
    IncidentKind.UNREADABLE_FILES,
)
"""The kinds that keep a window from being certified, whatever else is known."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One incident: offsets `[lo, hi)` of a partition where it has a place. `detail` is JSON-able.

    Place and detail by kind; epochs are (leader epoch, end offset), ascending:

    truncated             what is gone; `lineage` it belonged to, `seen_epochs`
    topic_recreated       the topic; `old_id`, `old_ends` by partition. Or frozen offsets that are gone with the old
                            one, which is `topic_id` then; `new_id`
    expired               what was deleted
    leader_changed        from the first offset under another epoch on; `epochs`, `before` (the last window's last);
                            where no hop leads into the topic `doubts`: each with a count; empty: it lost nothing
    beginning_gone        the topic; `starts` by partition, `begins_at`: the time of the last of these first records;
                            null where stamps of theirs cannot be: `stamps` (partition → milliseconds)
    baseline_unknown      the topic; `hop`, `keys`: number of undecidable keys, `begins_at`: the log's first record, or
                            with `stamps` (as above) when its first window was opened
    partitions_added      the range of the new partition
    open_transaction      from its first offset to the high watermark; `producer_id`, `producer_epoch`,
    hanging_transaction     `transactional_id`, `state`, `last_timestamp_ms`
    group_unknown         from the first record that waits to the end of the window; `group`, `records` of this window
    group_out_of_range      that wait, `committed` (the offset where the group stands; null where it has none), `log`
    consumer_stalled        (where the log begins and ends, if that offset is out of range), `cut_off` (`leader_epoch`
                            of the commit, `agreed`: up to where the log has what was read; null: not known)
    progress_unknown      the same of a sink's own progress: `hop` and `progress` (`table`, `offset`: its column,
    progress_out_of_range   `means`, `rows`: the condition of its rows) in place of `group`; `unknown`: what it has
                            of the partition. Of a stalled one, too

    slice_grown           a table (`topic` is its name, `topic_id` empty); `slices` (`window`, `counted`: its rows when
    slice_shrunk            it was counted last, `rows`: now), `windows`: number of slices, `rows`: by how many they
    slice_first_counted     changed, `new_rows`: those that transaction ids say are new or changed
    no_time_index         a table; `column`
    times_ahead           a table; `column`, `rows` with times more than a day ahead, `oldest` and `newest` of these
                            times, as text; `infinite`: rows with the time infinity, which are judged without a time
    repeated_keys         a topic; `keys`: number of those with several records, of them `resend`, `conflict`, `unknown`
                            (`makewhole.model.verdict.Repeat`), `records` beyond the first of each, `first`: the first
                            keys (`key`, `repeat`, `places`, `before`: those of windows before), `files`: all of them
    unreadable_files      a dataset; `files` (`path`, `size_bytes`, `written`; `spoilt`: it is whole, and pages of it
                            do not decode): the first by path, and their `number`
    left_over_files       the same of files that no reader takes; `size_bytes`: of all
    values_not_looked_at  a store; `reason` (`view`, `no_key_index`), `key`: its columns
    prepared_transaction  a table; `keys`: number of findings that wait for them, `transactions` (`gid`, `owner`,
                            `prepared`: since when, `tables`: those that it wrote to): the oldest, and their `number`
    never_compared        a hop's end (as `filter_changed`); `hop`, `columns`: their names
    filter_changed        a hop's end (`topic` is the hop, `topic_id` empty); `hop`, `before` and `now`: its `where`

    Offsets that were frozen and gone before they could be read have `before_it_was_read` true: they are what the
    accounting counts as expired. A truncation that took offsets which earlier windows had read has it false.
    """

    kind: IncidentKind
    point: str
    topic: str
    topic_id: str
    partition: int | None = None
    lo: int | None = None
    hi: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def span(self) -> int:
        """Number of offsets it concerns; 0 where it has no place."""
        return 0 if self.lo is None or self.hi is None else self.hi - self.lo

    @property
    def is_partial(self) -> bool:
        """Return whether offsets that were frozen could never be read: what they held is not known."""
        return bool(self.detail.get("before_it_was_read"))

    @property
    def doubts(self) -> Mapping[Doubt, int]:
        """Return why a change of leader may have taken acknowledged records along, each with a count."""
        if self.kind is not IncidentKind.LEADER_CHANGED:
            return {}
        counts = self.detail.get("doubts", {Doubt.NOT_LOOKED_AT.value: 1})
        return {Doubt(name): count for name, count in counts.items()}

    @property
    def place(self) -> str:
        """Return the topic with the partition."""
        return f"{self.topic}/{self.partition}"

    @property
    def is_of_files(self) -> bool:
        """Return whether files of a dataset are in doubt, and no transactions."""
        return any(transaction.get("file") for transaction in self.detail.get("transactions", ()))

    @property
    def is_of_standby(self) -> bool:
        """Return whether what is in doubt is known by a standby alone."""
        transactions = self.detail.get("transactions", ())
        return any(transaction.get("prepared", "") is None for transaction in transactions)

    @property
    def is_of_unreadable_files(self) -> bool:
        """Return whether there are files among what is in doubt that cannot be read."""
        return any(transaction.get("unreadable") for transaction in self.detail.get("transactions", ()))

    @property
    def may_have_lost(self) -> bool:
        """Return whether it may have taken acknowledged records along that nothing upstream would show."""
        return bool(self.doubts)

    def is_refused(self, pipeline: Pipeline) -> bool:
        """Return whether keys have several records in a topic of which the file refuses them."""
        point = pipeline.points.get(self.point)
        is_asked = has_log(point) and point.duplicates is Duplicates.REFUSED
        return self.kind is IncidentKind.REPEATED_KEYS and is_asked and self.detail["keys"] > 0

    def blocks(self, pipeline: Pipeline) -> bool:
        """Return whether a window with it cannot be certified.

        What windows had read and is gone can be judged again where a point upstream says what must be in the topic. So
        can what a change of leader may have taken along; elsewhere only `reach: log` accepts that this is not known.
        """
        if self.is_partial or self.kind in _UNPROVEN:
            return True
        if self.kind is IncidentKind.REPEATED_KEYS:
            return self.is_refused(pipeline)
        is_fed = any(hop.target == self.point for hop in pipeline.hops)
        if self.kind is IncidentKind.LEADER_CHANGED:
            return self.may_have_lost and not is_fed and pipeline.reach is not Reach.LOG
        return self.kind in (IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED) and not is_fed
