"""Follow the end of a topic for some keys: each record is read once, however often it is asked for."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from makewhole.compute.decode.unread_keys import ComparedKeys, is_compacted_by_key, may_take_other_keys
from makewhole.compute.frames import HASH, LOG_ORDER, with_place
from makewhole.compute.judge.tombstones import log_order, standing_tombstones
from makewhole.compute.normalise import log_columns, topic_records
from makewhole.kafka.lineage import Epochs, divergence
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import TransientError
from makewhole.model.plan import CANNOT_BE_READ, ErasedSince
from makewhole.model.points import Erased, TablePoint, TopicPoint
from makewhole.model.positions import RecordPositions, SeenLog
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext, key_shape

_RENEW_SECONDS = 5.0
_OWN_END_SECONDS, _POLL_SECONDS = 30.0, 0.02
_PLACE = ("partition", "offset")
_NOT_KNOWN = -1
_POSITIONS = {"partition": pl.Int32, "offset": pl.Int64}


class OwnRecords:
    """The positions of the records that a plan wrote to a topic itself, in this attempt or an earlier one."""

    def __init__(self, plan: str, load: Callable[[str], RecordPositions]) -> None:
        """`load` reads from the journal what is known of a topic incarnation; it is called at most once."""
        self.plan, self._load = plan, load
        self._noted: list[pl.DataFrame] = []
        self._is_loaded = False

    def note(self, positions: RecordPositions) -> None:
        """Add records that are written now."""
        self._noted.append(_frame(positions))

    def among(self, records: pl.DataFrame, topic_id: str) -> pl.DataFrame:
        """Return the plan's own among some records: the header says so, and the position proves it."""
        named = records.filter(pl.col("replay_plan") == self.plan)
        if named.is_empty():
            return named
        if not self._is_loaded:
            self._noted.append(_frame(self._load(topic_id)))
            self._is_loaded = True
        return named.join(pl.concat(self._noted), on=_PLACE, how="semi")


@dataclass(frozen=True, kw_only=True)
class FollowedTopic:
    """A topic and its connection. `tombstones_erase`: a record without a value says there that its key was deleted on
    purpose, and does not count as a record of it."""

    connection: KafkaConnection
    point: TopicPoint
    tombstones_erase: bool = False


class TopicTail(ClosingContext):
    """The committed records of some keys behind the place up to which a topic was looked at. Close it after use.

    `not_known`: why some of these records cannot be known any more; None: all of them are. `unread`: the keys whose
    first record cannot be read, and is known to be theirs by its Kafka key alone.
    """

    def __init__(
        self,
        topic: FollowedTopic,
        seen: SeenLog | None,
        keys: pl.Series,
        own: OwnRecords | None = None,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        """`seen` None: it was not looked at before, so that only what comes from now on is read. Records of `own` do
        not count. `renew` is called from time to time while it reads."""
        self._connection, self._point, self._seen, self._own = topic.connection, topic.point, seen, own
        self._shape = key_shape(topic.point, tombstones_erase=topic.tombstones_erase)
        is_whole = topic.point.explode is None
        self._compares_keys = is_whole and not is_compacted_by_key(topic.point.key)
        self._renew, self._renewed_at = renew, time.monotonic()
        self._keys = keys.unique().implode()
        self._compared, self._compacted = ComparedKeys(), dict[int, None]()  # partitions, as a set in their order
        self._read_until: dict[int, int] = {}
        self._own_ends: dict[int, int] = {}
        self._topic_id: str | None = None
        self._places: dict[str, str] = {}
        self.unread: set[str] = set()
        self._ordered: list[pl.DataFrame] = []
        self._erased: dict[str, str] | None = None
        self._stack = ExitStack()
        self.not_known: str | None = None

    def close(self) -> None:
        self._stack.close()

    def read_on(self) -> Mapping[str, str]:
        """Read on to the stable end of now; return the place of the first record of each key that came.

        Raises:
            TransientError: the plan's own last transaction has not ended at each partition.
        """
        if self._topic_id is None:
            self._log = self._stack.enter_context(TopicLog(self._connection, self._point.topic))
            self._broker = self._stack.enter_context(BrokerLog(self._connection))
        elif self._log.describe().topic_id != self._topic_id:  # also shows the partitions that it got since
            self._note_gap("was deleted and made again")
        ends = self._stable_ends()
        if self._topic_id is None:
            self._topic_id = self._begin(ends)
        for partition, end in ends.items():
            begin = self._read_until.get(partition, 0)
            if begin < end:
                self._read(partition, begin, end)
                self._read_until[partition] = end
        if may_take_other_keys(self._point, self._compared):
            for partition in self._compacted:
                self._note_gap(
                    f"partition {partition} was compacted, by keys that are not known to be those of the file"
                )
        return self._places

    def _stable_ends(self) -> dict[int, int]:
        """Return the stable end of each partition, once it is behind the plan's own records.

        A transaction ends at its partitions some moments after its commit was acknowledged to its producer. What others
        wrote there meanwhile stands before no stable end, and has come all the same.
        """
        deadline = time.monotonic() + _OWN_END_SECONDS
        while True:
            ends = {partition: end.offset for partition, end in self._log.stable_ends().items()}
            if all(ends.get(partition, 0) >= end for partition, end in self._own_ends.items()):
                return ends
            if time.monotonic() > deadline:
                raise TransientError(
                    f"{self._point.topic}: the transaction of the plan's last chunk has not ended at all partitions in "
                    f"{_OWN_END_SECONDS:.0f} s; try again"
                )
            self._pause()

    def _pause(self) -> None:
        self._keep_lease()
        time.sleep(_POLL_SECONDS)

    def erased_since(self, erased: Erased) -> ErasedSince:
        """Read on, and return the keys that a tombstone deletes: all that was known before lies before it."""
        self.read_on()
        if self.not_known is not None:
            return ErasedSince(not_known=f"{self.not_known}, so that a tombstone of the key may have been there")
        if self._erased is None:
            self._erased = self._standing()
        return ErasedSince(erased_at={key: f"{erased.description}: {place}" for key, place in self._erased.items()})

    def _standing(self) -> dict[str, str]:
        """Return the place (topic, partition, offset) of the tombstone that stands, by key."""
        if not self._ordered:
            return {}
        records = pl.concat(self._ordered)
        named = standing_tombstones(records.select(*LOG_ORDER)).join(
            records.select("key", *HASH).unique(HASH), on=HASH, how="left"
        )
        places = named.select("key", "partition", "offset").rows()
        return {key: f"{self._point.topic}/{partition}/{at}" for key, partition, at in places}

    def skip(self, positions: RecordPositions) -> None:
        """Leave out the plan's own records where they follow what was read without a gap."""
        partitions, offsets = np.asarray(positions.partitions), np.sort(np.asarray(positions.offsets))
        order = np.argsort(np.asarray(positions.offsets), kind="stable")
        for partition in np.unique(partitions).tolist():
            own = offsets[partitions[order] == partition]
            first, last = int(own[0]), int(own[-1])
            self._own_ends[partition] = last + 1
            if self._read_until.get(partition) == first and last - first + 1 == len(own):
                self._read_until[partition] = last + 1

    def _begin(self, ends: Mapping[int, int]) -> str:
        """Set where to begin; return the id of the topic."""
        topic_id = self._log.describe().topic_id
        if self._seen is None:
            self._read_until = dict(ends)
        elif self._seen.topic_id in (None, topic_id):  # of a topic that was made again nothing was seen
            self._read_until = dict(self._seen.offsets)
            for partition, begin in self._seen.offsets.items():
                if ends.get(partition, 0) < begin:
                    self._note_gap(f"partition {partition} ended at {begin} and ends before that now")
                elif partition in self._seen.leader_epochs:
                    self._read_until[partition] = self._agreed(partition, begin, self._seen.leader_epochs[partition])
        return topic_id

    def _agreed(self, partition: int, begin: int, seen: Epochs) -> int:
        """Return where to begin in a partition: what was cut off before that has other records at its offsets now."""
        agreed = divergence(partial(self._log.end_of_leader_epoch, partition), seen, _NOT_KNOWN)
        if agreed == _NOT_KNOWN:
            self._note_gap(f"partition {partition} was cut off before {begin}, and where is not known")
        return begin if agreed == _NOT_KNOWN else min(begin, agreed)

    def _read(self, partition: int, begin: int, end: int) -> None:
        assert self._topic_id is not None
        wanted = PartitionRange(topic=self._point.topic, topic_id=self._topic_id, partition=partition, lo=begin, hi=end)
        compares = self._compares_keys
        columns = log_columns(self._shape, compares_keys=compares)
        reader = read_range(self._broker, wanted, columns=columns)
        for batch in reader.batches():
            records = topic_records(batch, self._shape, compares_keys=compares and not self._compared.others)
            self._compared += records.compared
            self._keep_lease()
            self._add(self._of_keys(with_place(records.copies)))
            self._note_order(self._of_keys(records.tombstones))
            self._note_unread(partition, records.undecodable)
        if reader.expired:
            self._note_gap(f"partition {partition} lost offsets from {begin} on before they were looked at")
        if reader.accounting.compacted:
            self._compacted[partition] = None
        if reader.undecodable:
            self._note_gap(f"partition {partition} has {len(reader.undecodable)} places that {CANNOT_BE_READ}")

    def _note_unread(self, partition: int, unread: pl.DataFrame) -> None:
        """Take a record that cannot be read as one of the key that it may have; where that may be any, nothing is
        known."""
        if unread["business_key"].null_count():
            self._note_gap(f"partition {partition} has records that {CANNOT_BE_READ} and may be of any key")
        named = unread.select(pl.col("business_key").alias("key"), "place").drop_nulls("key")
        for key, place in self._of_keys(named).iter_rows():
            if self._places.setdefault(key, place) == place:
                self.unread.add(key)

    def _keep_lease(self) -> None:
        if time.monotonic() - self._renewed_at > _RENEW_SECONDS:
            self._renew()
            self._renewed_at = time.monotonic()

    def _add(self, records: pl.DataFrame) -> None:
        if self._own is not None and len(records):
            assert self._topic_id is not None
            records = records.join(self._own.among(records, self._topic_id), on=_PLACE, how="anti")
        for key, place in records.select("key", "place").iter_rows():
            self._places.setdefault(key, place)
        if self._shape.tombstones_erase:
            self._note_order(records)

    def _note_order(self, records: pl.DataFrame) -> None:
        if len(records):
            assert self._topic_id is not None
            ordered = log_order(records, self._point.name, self._topic_id)
            self._ordered.append(ordered.with_columns(records["key"]))
            self._erased = None

    def _of_keys(self, records: pl.DataFrame) -> pl.DataFrame:
        # The journal cannot hold NUL, and has it escaped in a key.
        named = records.with_columns(pl.col("key").str.replace_all("\x00", "\\u0000", literal=True))
        return named.filter(pl.col("key").is_in(self._keys))

    def _note_gap(self, what: str) -> None:
        self.not_known = self.not_known or f"{self._point.topic} {what}"


@dataclass(frozen=True, kw_only=True)
class TombstonesSince:
    """The tombstones behind the places up to which topics were looked at, by `seen` of a topic point."""

    context: WindowContext
    seen: Callable[[str], SeenLog]

    def erased(self, store: TablePoint, keys: Iterable[str]) -> ErasedSince:
        """Return which of the keys were erased from a store whose erased keys are known from tombstones."""
        assert store.erased is not None
        wanted, erased_at = pl.Series("key", sorted(set(keys)), dtype=pl.String), dict[str, str]()
        for name in store.erased.topics if len(wanted) else ():
            point = self.context.pipeline.topic(name)
            topic = FollowedTopic(connection=self.context.kafka(point), point=point, tombstones_erase=True)
            with TopicTail(topic, self.seen(name), wanted) as tail:
                since = tail.erased_since(store.erased)
            if since.not_known is not None:
                return since
            erased_at = {**since.erased_at, **erased_at}
        return ErasedSince(erased_at=erased_at)


def ranges_read(window: Window, topic: str) -> SeenLog:
    """Return the end of a window's ranges of a topic: so far it was looked at, at least."""
    parts = window.ranges.get(topic, ())
    return SeenLog(
        topic_id=parts[0].topic_id if parts else None,
        offsets={part.partition: part.hi for part in parts},
        leader_epochs={part.partition: part.leader_epochs for part in parts if part.leader_epochs},
    )


def _frame(positions: RecordPositions) -> pl.DataFrame:
    return pl.DataFrame({"partition": positions.partitions, "offset": positions.offsets}, schema=_POSITIONS)
