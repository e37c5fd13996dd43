"""Test a bucket judged against a real store: what the slice of a window does not hold is looked up by key."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.frames import TOPIC_KEYS
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.compute.keys import with_hash
from makewhole.compute.normalise import table_frame
from makewhole.compute.row_filter import typed_term
from makewhole.key_index.files import IndexFile, write_index_file
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.window import Window
from makewhole.postgres.read.export import ExportReader
from makewhole.postgres.read.export_parts import ExportPart
from makewhole.tables.shape import TimeBounds
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import IndexFiles
from makewhole_spark.reconcile.bucket.task import BucketEnd, BucketTask, PointIndex
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from tests.integration.postgres.people import People

pytestmark = pytest.mark.integration

REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
HOP = Hop(source="topic", target="store", remedies=REMEDIES)
DAY = datetime(2013, 1, 2, tzinfo=UTC)


class Bench:
    """One bucket (all keys share it), a store in PostgreSQL, files in a folder."""

    def __init__(self, people: People, folder: Path) -> None:
        self.people = people
        store = TablePoint(
            name="store", kind=PointKind.STORE, connection="people", table="store", key=("id",), time="at"
        )
        ledger = TablePoint(name="ledger", kind=PointKind.LEDGER, connection="people", table="ledger", key=("id",))
        topic = TopicPoint(name="topic", connection="kafka", topic="topic", key=("$.id",))
        end = datetime(2013, 1, 3, tzinfo=UTC)
        self.context = WindowContext(
            pipeline=Pipeline(name="demo", points={"topic": topic, "store": store, "ledger": ledger}, hops=(HOP,)),
            window=Window(pipeline="demo", number=2, revision=1, start=DAY, end=end, opened_at=end, ranges={}),
            connections={"people": people.connection},
            storage=Storage(root=str(folder)),
        )
        people.sql("create table store (id text, at timestamptz); create table ledger (id text, cancelled boolean)")

    def write(self, frame: pl.DataFrame) -> tuple[str, ...]:
        return (self.context.storage.write_parquet("bench", frame),)

    def topic(self, *keys: str) -> pl.DataFrame:
        rows = [
            {"key": key, "row_hash": 0, "place": f"0:{at}", "excluded_by": [], "partition": 0, "offset": at}
            | {"is_aborted": False, "producer_id": 1, "sequence": at}
            for at, key in enumerate(keys)
        ]
        inputs = {name: kind for name, kind in TOPIC_KEYS.items() if name not in ("key_hi", "key_lo")}
        return with_hash(pl.DataFrame(rows, schema=inputs)).select(*TOPIC_KEYS)

    def run(self, *keys: str) -> tuple[str, ...]:
        """Write the run of the key index for a window that had these keys."""
        marks = (pl.lit(False).alias(name) for name in ("is_replay", "is_produced"))
        run = build_key_run(self.topic(*keys).with_columns(*marks), has_versions=False)
        return (write_index_file(self.context.storage, "bench", [stored_run(run, 1)]),)

    def slice(self) -> tuple[str, ...]:
        """The store's rows whose time falls into the window."""
        store = self.context.pipeline.points["store"]
        assert isinstance(store, TablePoint)
        reader = ExportReader(self.people.connection, self.context.table_shape(store), None)
        bounds = TimeBounds(start=DAY, end=self.context.window.end)
        frames = [table_frame(frame, {})[0] for frame in reader.part(bounds, ExportPart())]
        return self.write(pl.concat(frames)) if frames else ()

    def judge(self, task: BucketTask) -> dict[str, str]:
        answer = judge_bucket(task)
        findings = self.context.storage.read_parquet([answer.findings] if answer.findings else [])
        return {} if findings is None else dict(findings.select("key", "verdict").rows())

    def task(self, source: tuple[str, ...] = (), earlier: tuple[str, ...] = ()) -> BucketTask:
        of_index = tuple(IndexFile(path=path, windows=(1,)) for path in earlier)
        return BucketTask(
            context=self.context,
            hop=HOP,
            bucket=bucket_name(0, 1),
            source=BucketEnd(files=source, index=PointIndex(copies=IndexFiles(earlier=of_index))),
            target=BucketEnd(files=self.slice()),
        )


@pytest.fixture
def bench(people: People, tmp_path: Path) -> Bench:
    return Bench(people, tmp_path)


def test_a_row_outside_the_slice_is_found_before_its_key_is_called_missing(bench: Bench) -> None:
    bench.people.sql("insert into store values ('a', '2013-01-09')")

    assert bench.judge(bench.task(bench.write(bench.topic("a", "b")))) == {"b": "missing"}


def test_a_second_row_for_a_record_of_an_earlier_window_is_a_duplicate(bench: Bench) -> None:
    """The consumer read an old record again: only the new row lies in the slice, the source is long certified."""
    bench.people.sql("insert into store values ('a', '2013-01-01'), ('a', '2013-01-02'), ('b', '2013-01-02')")

    verdicts = bench.judge(bench.task(earlier=bench.run("a", "b")))

    assert verdicts == {"a": "duplicate"}


def test_a_row_that_was_updated_between_snapshot_and_look_up_is_still_one_row(bench: Bench) -> None:
    bench.people.sql("insert into store values ('a', '2013-01-02')")
    task = bench.task(earlier=bench.run("a"))
    bench.people.sql("update store set at = '2013-01-02 01:00'")

    assert bench.judge(task) == {}


def test_an_unmatched_row_that_the_ledger_holds_is_known_unless_the_hop_leaves_it_out(bench: Bench) -> None:
    bench.people.sql(
        "insert into store values ('known', '2013-01-02'), ('left_out', '2013-01-02'), ('x', '2013-01-02')"
    )
    bench.people.sql("insert into ledger values ('known', false), ('left_out', true)")
    hop = Hop(source="ledger", target="store", remedies=REMEDIES, where="cancelled = false")
    pipeline = replace(bench.context.pipeline, hops=(hop,))
    context = replace(bench.context, pipeline=pipeline)
    ledger = pipeline.points["ledger"]
    assert isinstance(ledger, TablePoint)
    assert context.table_shape(ledger).filters == {hop.name: (typed_term("cancelled", False),)}

    verdicts = bench.judge(replace(bench.task(), context=context, hop=hop))

    assert verdicts == {"left_out": "unexpected", "x": "unexpected"}
