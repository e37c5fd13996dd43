"""Check what windows know of tombstones: their order across a log that was cut off, and what could not be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.frames import JUDGED, UNDECODABLE
from makewhole.compute.keys import hash_hex, with_hash
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Erased, PointKind, TablePoint, TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import LogOfErasures
from makewhole_spark.reconcile.bucket.task import BucketEnd, BucketTask, KnownElsewhere
from makewhole_spark.reconcile.gather.erasures import logs_of_erasures
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.judge.erased_keys import mark_erased, mark_tombstone_unknown

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PIPELINE = Pipeline(
    name="shop",
    points={
        "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="outbox", key=("id",)),
        "log": TopicPoint(name="log", connection="k", topic="log", key=("kafka.key",)),
        "store": TablePoint(
            name="store",
            kind=PointKind.STORE,
            connection="db",
            table="store",
            key=("id",),
            erased=Erased(topics=("log",)),
        ),
    },
    hops=(
        Hop(source="outbox", target="log", remedies=REPORT),
        Hop(source="log", target="store", remedies=REPORT),
    ),
)
OUTBOX_HOP, STORE_HOP = PIPELINE.hops
BUCKET = bucket_name(0, 1)
VALUE, TOMBSTONE = False, True
EXPIRED, UNREADABLE = ("undecidable", "expired"), ("undecidable", "unreadable_record")
ERASED, MISSING = ("erased", "erased_on_purpose"), ("missing", None)


def day(number: int) -> datetime:
    return datetime(2025, 3, number, tzinfo=UTC)


@dataclass
class World:
    """Windows of a day each, of which the last one is judged, unless `ours` says another."""

    storage: Storage
    windows: list[Any] = field(default_factory=list)
    manifests: dict[int, dict[str, Any]] = field(default_factory=dict)
    incidents: list[tuple[Any, Incident]] = field(default_factory=list)
    ours: int | None = None

    def window(self, span: tuple[int, int], records: Mapping[int, bool], *, lineage: int = 0, **manifest: Any) -> None:
        """Add a window that read the records of the key K by offset."""
        number = len(self.windows) + 1
        parts = tuple(
            PartitionRange(topic="log", topic_id="T", partition=at, lo=span[0], hi=span[1], lineage=lineage)
            for at in (0, 1)
        )
        self.windows.append(
            SimpleNamespace(number=number, start=day(number), end=day(number + 1), ranges={"log": parts})
        )
        files = {
            kind: {BUCKET: [self._file(number, offsets, is_tombstone=kind == "tombstones")]} if offsets else {}
            for kind, offsets in (
                ("files", [at for at, is_tombstone in records.items() if not is_tombstone]),
                ("tombstones", [at for at, is_tombstone in records.items() if is_tombstone]),
            )
        }
        self.manifests[number] = {"log": {**files, **manifest}}

    def lose(self, lo: int, hi: int) -> None:
        """Have the last window find offsets gone before it could read them."""
        window = self.windows[-1]
        incident = Incident(
            kind=IncidentKind.EXPIRED, point="log", topic="log", topic_id="T", partition=0, lo=lo, hi=hi
        )
        self.incidents.append((window, incident))
        self.manifests[window.number]["log"]["accounting_by_partition"] = {"0": {"expired": hi - lo, "undecodable": 0}}

    def damage(self, *places: str, key: str | None = None) -> None:
        """Have the last window find records that it could not read."""
        rows = [(place, "wrong checksum", key) for place in places]
        path = self.storage.write_parquet("bad", pl.DataFrame(rows, schema=UNDECODABLE, orient="row"))
        self.manifests[self.windows[-1].number]["log"]["undecodable_files"] = [path]

    def _file(self, number: int, offsets: Sequence[int], *, is_tombstone: bool) -> str:
        keys = with_hash(pl.DataFrame({"key": ["K"] * len(offsets)})).with_columns(
            pl.Series("partition", [0] * len(offsets), pl.Int32),
            pl.Series("offset", offsets, pl.Int64),
            pl.lit(day(number)).cast(pl.Datetime("us", "UTC")).alias("time"),
            pl.lit(False).alias("is_aborted"),
            pl.lit(is_tombstone).alias("is_tombstone"),
        )
        return self.storage.write_parquet(f"window={number}", keys)

    def verdict(self, hop: Hop) -> tuple[str, str | None]:
        """Return the verdict and the cause of K, which is missing, and was handed over by the first window."""
        ours = self.windows[-1 if self.ours is None else self.ours - 1]
        before = [window for window in self.windows if window.number < ours.number]
        neighbours = SimpleNamespace(
            context=SimpleNamespace(pipeline=PIPELINE, window=ours, storage=self.storage),
            manifests=self.manifests[ours.number],
            manifests_of=lambda window: self.manifests[window.number],
            read_manifests=lambda _: None,
            buckets=1,
            recent=before,
            incidents=self.incidents,
            later=[window for window in self.windows if window.number > ours.number],
            windows=SimpleNamespace(since=lambda *_, **__: before, topic_ids=lambda _: [("log", "T", 1)]),
        )
        logs = logs_of_erasures(cast(NeighbouringWindows, neighbours), hop, before[:1])
        return self._marked(hop, ours, logs[BUCKET])

    def _marked(self, hop: Hop, ours: Any, log: LogOfErasures) -> tuple[str, str | None]:
        context = SimpleNamespace(storage=self.storage, pipeline=PIPELINE, tables=None, window=ours)
        task = BucketTask(
            context=cast(WindowContext, context),
            hop=hop,
            bucket=BUCKET,
            source=BucketEnd(),
            target=BucketEnd(),
            elsewhere=KnownElsewhere(erasures=log),
        )
        named = with_hash(pl.DataFrame({"key": ["K"]})).with_columns(
            hash_hex().alias("key_hash"), pl.lit("missing").alias("verdict"), pl.lit(ours.start).alias("time")
        )
        more = [pl.lit(None, kind).alias(name) for name, kind in JUDGED.items() if name not in named.columns]
        judged, erased = mark_erased(task, named.with_columns(more).select(*JUDGED))
        verdict, cause = mark_tombstone_unknown(judged, erased).select("verdict", "hint").row(0)
        return verdict, cause


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Storage(root=str(tmp_path)))


@pytest.mark.parametrize("hop", [OUTBOX_HOP, STORE_HOP])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({120: VALUE, 170: TOMBSTONE}, {160: VALUE}, MISSING),  # it came back where its tombstone had been
        ({170: VALUE}, {160: TOMBSTONE}, ERASED),
        ({140: VALUE}, {160: TOMBSTONE}, ERASED),
        ({120: VALUE, 170: TOMBSTONE}, {}, ERASED),
    ],
)
def test_what_follows_in_a_log_that_was_cut_off_is_later(
    world: World, hop: Hop, before: Mapping[int, bool], after: Mapping[int, bool], expected: tuple[str, str | None]
) -> None:
    """The log was cut off at 150 between the windows."""
    world.window((100, 200), before)
    world.window((150, 165), after, lineage=1)

    assert world.verdict(hop) == expected


@pytest.mark.parametrize(
    ("value", "span", "expected"),
    [
        (20, (50, 60), EXPIRED),
        (70, (50, 60), MISSING),  # a tombstone before the record deletes nothing
        (90, (0, 100), EXPIRED),
    ],
)
def test_a_tombstone_may_have_been_in_offsets_that_the_window_could_not_read(
    world: World, value: int, span: tuple[int, int], expected: tuple[str, str | None]
) -> None:
    world.window((0, 100), {value: VALUE})
    world.lose(*span)

    assert world.verdict(STORE_HOP) == expected


def test_a_key_that_was_handed_over_may_have_its_tombstone_where_the_next_window_could_not_read(world: World) -> None:
    world.window((0, 100), {90: VALUE})
    world.window((100, 200), {})
    world.lose(100, 120)

    assert world.verdict(STORE_HOP) == EXPIRED


def test_what_the_window_that_handed_a_key_over_could_not_read_may_be_its_tombstone(world: World) -> None:
    world.window((0, 100), {20: VALUE})
    world.damage("0:50")
    world.window((100, 200), {})

    assert world.verdict(STORE_HOP) == UNREADABLE


def test_what_was_unread_before_the_cut_of_a_log_lies_before_a_record_behind_it(world: World) -> None:
    world.window((0, 200), {})
    world.damage("0:180")
    world.window((150, 300), {160: VALUE}, lineage=1)

    assert world.verdict(STORE_HOP) == MISSING


@pytest.mark.parametrize(
    ("records", "places", "key", "expected"),
    [
        ({20: VALUE}, ("0:50",), None, UNREADABLE),
        ({20: VALUE}, ("0:10", "0:9"), None, MISSING),
        ({20: VALUE}, ("0:10", "1:9"), None, UNREADABLE),  # another partition has no order with this one
        ({20: VALUE}, ("0:50",), "L", MISSING),
        ({20: VALUE, 30: TOMBSTONE}, ("0:50",), None, ERASED),
    ],
)
def test_a_tombstone_may_be_in_a_batch_that_could_not_be_read(
    world: World,
    records: Mapping[int, bool],
    places: Sequence[str],
    key: str | None,
    expected: tuple[str, str | None],
) -> None:
    world.window((0, 100), records)
    world.damage(*places, key=key)

    assert world.verdict(STORE_HOP) == expected


def test_so_it_may_in_a_window_that_was_judged_before_this_one(world: World) -> None:
    world.window((0, 100), {20: VALUE})
    world.window((100, 200), {})
    world.damage("0:150")
    world.ours = 1

    assert world.verdict(STORE_HOP) == UNREADABLE
