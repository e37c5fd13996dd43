"""Read what was committed to topics since compensation began to write to them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.normalise import topic_frame
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import RangeReader, read_range
from makewhole.kafka.offsets import describe_topic, stable_offsets
from makewhole.lake.local_files import ObjectFile
from makewhole.model.closing import ClosingContext
from makewhole.model.plan import PLAN_HEADER, SEQ_HEADER
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext

CopiesByKey = Mapping[str, list[dict[str, Any]]]
"""Key → its copies at one point, each with `c:<column>` texts."""
_NO_COPY = -1


@dataclass(frozen=True, kw_only=True)
class StartOffsets:
    """The end of each topic's log before compensation wrote to it: point → partition → offset."""

    offsets: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, kw_only=True)
class WrittenActions:
    """The (plan, action number) in the lineage headers of committed records. `is_complete`: no record since then was
    deleted or compacted, or could not be read, so that an action which is not in `actions` has no record."""

    actions: frozenset[tuple[str, int]]
    is_complete: bool


class CopiesFile(ClosingContext, Mapping[str, list[dict[str, Any]]]):
    """The copies of wanted keys, in a file; a number of each key is in memory. Close it after use."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._file = ObjectFile()
        self._last = dict.fromkeys(keys, _NO_COPY)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def add(self, copy: dict[str, Any]) -> None:
        """Add a copy of a wanted key."""
        self._last[copy["key"]] = self._file.add((self._last[copy["key"]], copy))

    def __getitem__(self, key: str) -> list[dict[str, Any]]:
        place, copies = self._last[key], list[dict[str, Any]]()
        while place != _NO_COPY:
            place, copy = self._file.read(place)
            copies.append(copy)
        return copies[::-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)


def copies_since(context: WindowContext, name: str, keys: set[str], since: StartOffsets) -> CopiesFile:
    """Read the committed copies of these keys. Close what is returned."""
    if not keys:
        return CopiesFile()
    point = context.pipeline.topic(name)
    shape = context.value_shape(point)
    wanted = pl.DataFrame({"key": sorted(keys)}, schema={"key": pl.String})
    with ExitStack() as stack:
        copies = stack.enter_context(CopiesFile(keys))
        with _readers(context, point, since) as readers:
            for batch in (batch for reader in readers for batch in reader.batches()):
                frame = topic_frame(batch, shape)[0].join(wanted, on="key", how="semi")
                for copy in frame.drop(*HASH).iter_rows(named=True):
                    copies.add(copy)
        stack.pop_all()
        return copies


def written_actions_since(context: WindowContext, name: str, since: StartOffsets) -> WrittenActions:
    """Read which actions wrote a record. A header alone proves nothing: the journal must know the action, too."""
    actions: set[tuple[str, int]] = set()
    gone = 0
    with _readers(context, context.pipeline.topic(name), since, columns=("headers", "is_replayed")) as readers:
        for reader in readers:
            for batch in reader.batches():
                actions.update(_action_ids(batch))
            account = reader.accounting
            gone += account.expired + account.compacted + account.undecodable
    return WrittenActions(actions=frozenset(actions), is_complete=gone == 0)


def by_key(frame: pl.DataFrame) -> CopiesByKey:
    """Group the copies of a frame by key."""
    copies: dict[str, list[dict[str, Any]]] = {}
    for row in frame.unique(subset=["place"]).drop(*HASH).iter_rows(named=True):
        copies.setdefault(row["key"], []).append(row)
    return copies


def _action_ids(batch: Any) -> Iterator[tuple[str, int]]:
    for headers in batch.filter(batch.column("is_replayed")).column("headers").to_pylist():
        lineage = {entry["key"]: entry["value"] or b"" for entry in headers}
        plan, seq = lineage.get(PLAN_HEADER, b""), lineage.get(SEQ_HEADER, b"")
        if plan.isascii() and seq.isdigit():
            yield plan.decode(), int(seq)


@contextmanager
def _readers(
    context: WindowContext, point: TopicPoint, since: StartOffsets, **options: Any
) -> Iterator[Iterator[RangeReader]]:
    """Open a reader per partition, from the end before compensation to the current stable offset."""
    connection = context.kafka(point)
    topic_id = describe_topic(connection, point.topic).topic_id
    began = since.offsets.get(point.name, {})
    ends = {part.partition: part.hi for part in context.window.ranges.get(point.name, ())}
    with closing(BrokerLog(connection)) as broker:
        ranges = [
            PartitionRange(topic=point.topic, topic_id=topic_id, partition=partition, lo=lo, hi=max(lo, stable))
            for partition, stable in stable_offsets(connection, point.topic).items()
            for lo in [began.get(partition, ends.get(partition, 0))]
        ]
        yield (read_range(broker, part, **options) for part in ranges if part.span)
