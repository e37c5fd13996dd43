"""Ask what loads the targets of hops whether it has come past the records of actions: what it has not, it will load."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta

from makewhole.journal.replayed_positions import SentRecord
from makewhole.kafka.offsets import TopicLog
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.hops import Hop
from makewhole.model.points import Point, has_log
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.window.readers.hop_offsets import ReaderOffsets, read_hop_offsets, still_to_come
from makewhole.window.readers.standing_text import unknown_standing


class Loaders(ClosingContext):
    """Ask what loads the targets of hops, by its own progress or its consumer group. Nothing is opened before it is
    asked.

    It may have been set back since the window was judged, or its offsets may have come from elsewhere.
    """

    def __init__(
        self,
        hops: Mapping[str, Hop],
        places: Mapping[str, tuple[Point, Connection]],
        pending_max_age: timedelta,
    ) -> None:
        """`hops` by name; `places`: points by name, with their connections. `pending_max_age`: for how long a loader of
        which nothing is known may still come to a record."""
        self._hops, self._places, self._pending_max_age = hops, places, pending_max_age
        self._logs: dict[str, TopicLog] = {}
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def not_past(self, hop_name: str, records: Mapping[int, str]) -> dict[int, Refusal]:
        """Return the actions of whose records (`Before.records`, by their number) a hop's loader is not known to be
        past all, each with its refusal.

        Of a group without an offset nothing is known; its findings say by which cause they were judged. A sink whose
        own progress says nothing refuses them.
        """
        hop = self._hops.get(hop_name)
        log = None if hop is None else self._log(hop.source)
        target = None if hop is None else self._places.get(hop.target)
        if hop is None or log is None or target is None:
            return dict.fromkeys(records, _cannot_be_asked(hop_name))
        offsets = read_hop_offsets(log, hop, *target)
        if offsets is None:
            return {}
        answers = ((seq, _first_refusal(hop, offsets, log.topic, _places(text))) for seq, text in records.items())
        return {seq: refusal for seq, refusal in answers if refusal is not None}

    def not_past_sent(self, hop_name: str, sent: Mapping[int, Sequence[SentRecord]]) -> dict[int, Refusal]:
        """Return the actions of which earlier plans sent records (by number) that a hop's loader is not known to be
        past, each with its refusal.

        A loader of which nothing is known, or whose group has no offset there, may still come to a record until this is
        older than a key may be pending.
        """
        hop = self._hops.get(hop_name)
        names = [] if hop is None else [name for name in (hop.source, hop.redeliver_to) if name is not None]
        logs = {name: log for name in names if (log := self._log(name)) is not None}
        target = None if hop is None else self._places.get(hop.target)
        if hop is None or target is None or len(logs) < len(names):
            return dict.fromkeys(sent, _cannot_be_asked(hop_name))
        refused: dict[int, Refusal] = {}
        for name, log in logs.items():
            left = _left_in(log, sent)
            offsets = read_hop_offsets(log, hop, *target) if left and _speaks_of(hop, name) else None
            for seq, records in left.items():
                answers = (self._not_past_one(hop, offsets, log.topic, record) for record in records)
                refusal = next(filter(None, answers), None)
                refused |= {} if refusal is None else {seq: refusal}
        return refused

    def _not_past_one(self, hop: Hop, offsets: ReaderOffsets | None, topic: str, record: SentRecord) -> Refusal | None:
        if offsets is not None:
            refusal = _refusal(hop, offsets, topic, record.partition, record.offset)
            if refusal is not None or offsets.committed.get(record.partition) is not None:
                return refusal
        if record.age > self._pending_max_age:
            return None
        named = "" if hop.reader is not None else f"; write 'consumer_group' on hop {hop.name}, or wait"
        return Refusal(
            RefusalCode.NOT_KNOWN,
            f"a plan has sent a record of the key at {topic}/{record.partition}:{record.offset}, and nothing shows "
            f"whether what loads {hop.target} is past it{named}; it is taken to be when the record is older than "
            "pending.max_age",
        )

    def _log(self, name: str) -> TopicLog | None:
        point, connection = self._places.get(name, (None, None))
        if not has_log(point) or connection is None:
            return None
        if name not in self._logs:
            self._logs[name] = self._stack.enter_context(TopicLog(kafka_of(connection), point.topic))
        return self._logs[name]


def _speaks_of(hop: Hop, name: str) -> bool:
    """Return whether what says how far a hop's loader is speaks of a topic point: a progress that knows no topics has
    the offsets of the hop's source alone."""
    return name == hop.source or hop.progress is None or hop.progress.knows_topics


def _cannot_be_asked(hop_name: str) -> Refusal:
    return Refusal(
        RefusalCode.NOT_KNOWN, f"how far the loader of {hop_name} is cannot be asked any more; run the window again"
    )


def _left_in(log: TopicLog, sent: Mapping[int, Sequence[SentRecord]]) -> dict[int, list[SentRecord]]:
    """Return the records that are in a topic and that its log has not deleted, of each action that has any."""
    topic_id, starts = log.describe().topic_id, log.starts()
    left = {
        seq: [
            record
            for record in records
            if record.topic_id == topic_id
            and record.partition in starts
            and record.offset >= starts[record.partition].offset
        ]
        for seq, records in sent.items()
    }
    return {seq: records for seq, records in left.items() if records}


def _places(records: str) -> Iterator[tuple[int, int]]:
    """Yield the partition and the offset of each of an action's records."""
    for place in records.split(","):
        partition, offset = place.split(":")
        yield int(partition), int(offset)


def _first_refusal(hop: Hop, offsets: ReaderOffsets, topic: str, places: Iterable[tuple[int, int]]) -> Refusal | None:
    """Return why one of these records is not known to be passed; None: all of them are."""
    return next(filter(None, (_refusal(hop, offsets, topic, *place) for place in places)), None)


def _refusal(hop: Hop, offsets: ReaderOffsets, topic: str, partition: int, offset: int) -> Refusal | None:
    committed = offsets.committed.get(partition)
    if committed is not None:
        return still_to_come(hop) if committed <= offset else None
    why = unknown_standing(hop, offsets, topic, partition)
    return None if why is None else Refusal(RefusalCode.NOT_KNOWN, f"{why}; mend that, then run this window again")
