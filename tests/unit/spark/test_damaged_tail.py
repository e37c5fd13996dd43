"""Check that batches and holes which cannot be read, in the rest of a topic's log, count as gone there."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from makewhole.compensation.verification import committed_since
from makewhole.compensation.verification.committed_since import StartOffsets, written_actions_since
from makewhole.compute.decode.unread_keys import ComparedKeys
from makewhole.compute.frames import HASH, REPLAYS
from makewhole.compute.keys import with_hash
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.lake.storage import Storage
from makewhole.model.points import TopicPoint
from makewhole.window.context import WindowContext, key_shape
from makewhole_spark.reconcile.tails import log_tail
from makewhole_spark.reconcile.tails.log_tail import TailRead, TailTask, read_tail
from tests.unit.kafka.conftest import MemoryLog, plain_batch, wanted

pytestmark = pytest.mark.unit

POINT = TopicPoint(name="t", connection="k", topic="t", key=("$.id",))


class Log(MemoryLog):
    """A log in memory in the place of a broker."""

    def close(self) -> None:
        """Do nothing."""


def batch(base_offset: int, *keys: str) -> bytes:
    return plain_batch(base_offset, [(0, key.encode(), b'{"id":"%s"}' % key.encode(), []) for key in keys])


def damaged(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


SOUND = [batch(10, "a", "b"), batch(12, "late", "c"), batch(14, "d")]
DAMAGED = [SOUND[0], damaged(SOUND[1]), SOUND[2]]
HOLE = [SOUND[0], SOUND[2]]


def tail(
    folder: Path, monkeypatch: pytest.MonkeyPatch, log: Log, *, is_open: bool, compares_keys: bool = False
) -> TailRead:
    """Read offsets 10 to 15 of a log for the key `late`."""
    monkeypatch.setattr(log_tail, "BrokerLog", lambda _: log)
    monkeypatch.setattr(log_tail, "compared_sets", lambda *_: ())
    storage = Storage(root=str(folder))
    keys = storage.write_parquet("wanted", with_hash(pl.DataFrame({"key": ["late"]})).select(HASH))
    window = SimpleNamespace(prefix="p/w")
    context = SimpleNamespace(
        storage=storage, value_shape=key_shape, kafka=lambda _: None, pipeline=None, window=window
    )
    task = TailTask(
        context=cast(WindowContext, context),
        point=POINT,
        buckets=1,
        range=wanted(10, 15),
        is_open=is_open,
        wanted=(keys,),
        replays=BucketRows.none(REPLAYS),
        compares_keys=compares_keys,
    )
    return read_tail(task)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("batches", "unread"), [(SOUND, 0), (DAMAGED, 2), (HOLE, 2)])
def test_what_cannot_be_read_of_a_tail_counts_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: list[bytes], unread: int, is_open: bool
) -> None:
    log = Log(batches, doubt="nothing in Kafka leaves a hole")
    read = tail(tmp_path, monkeypatch, log, is_open=is_open)

    assert (read.expired, len(read.files)) == (unread, 0 if unread else 1)


def test_what_compaction_took_of_a_tail_is_counted_with_its_kafka_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that compaction took is not gone: retention, which that is for, has no part in it."""
    by_customer = plain_batch(14, [(0, b"customer", b'{"id":"d"}', [])])
    for log, keys in ((HOLE, ComparedKeys(same=3)), ([SOUND[0], by_customer], ComparedKeys(same=2, others=1))):
        read = tail(tmp_path, monkeypatch, Log(log), is_open=False, compares_keys=True)
        assert (read.expired, read.compacted, read.compared) == (0, 2, keys)
    not_compared = tail(tmp_path, monkeypatch, Log(HOLE), is_open=False)
    assert (not_compared.expired, not_compared.compacted, not_compared.compared) == (0, 2, ComparedKeys())


@pytest.mark.parametrize(("batches", "is_complete"), [(SOUND, True), (DAMAGED, False), (HOLE, False)])
def test_what_cannot_be_read_may_be_what_an_action_wrote(
    monkeypatch: pytest.MonkeyPatch, batches: list[bytes], is_complete: bool
) -> None:
    def of_log(name: str, value: Any) -> None:
        monkeypatch.setattr(committed_since, name, lambda *_: value)

    of_log("BrokerLog", Log(batches, doubt="nothing in Kafka leaves a hole"))
    of_log("describe_topic", SimpleNamespace(topic_id="id"))
    of_log("stable_offsets", {3: 15})
    context = SimpleNamespace(
        kafka=lambda _: None, pipeline=SimpleNamespace(topic=lambda _: POINT), window=SimpleNamespace(ranges={})
    )

    since = StartOffsets(offsets={"t": {3: 10}})
    assert written_actions_since(cast(WindowContext, context), "t", since).is_complete is is_complete
