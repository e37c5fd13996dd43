"""A window's stored verdicts, to be checked by a real Spark session."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.compute.frames import BUCKETS, VERDICTS
from makewhole.gate import HopSummary, PointEvidence
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Accounting
from makewhole_spark import stored_frames, validate
from makewhole_spark.validate import StoredVerdicts
from tests.world.examples import in_turn

KEYS = 100
HOPS = ("outbox→flights", "flights→warehouse")
Row = tuple[str | None, str | None, str | None, str | None]
Store = Callable[[Sequence[Row]], tuple[list[str], list[str]]]
BucketedRow = tuple[str, str | None, str, str, str | None, bool]
"""Hop, bucket, key hash, verdict, cause, whether the target holds the key."""
BucketRow = tuple[str, str | None, int | None, int | None]
"""Hop, bucket, clean keys, all keys."""
StoreClean = Callable[[Sequence[BucketedRow], Sequence[BucketRow]], tuple[list[str], list[str]]]

PLACES = ("in memory", "on Spark", "on Spark by names")
"""Where verdicts are checked."""

SCHEMA = pa.schema([(name, pa.string()) for name in ("hop", "key_hash", "verdict", "cause", "bucket")])


_HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def gate_library() -> None:
    """Ask the library itself."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have about every second test check its verdicts in memory, the others on Spark; `make test-all` has all in all
    places.

    A test is known by its name, so that those before and behind it change nothing. `asks_spark` is for Spark alone.
    """
    for item in items:
        if isinstance(item, pytest.Function) and item.path.is_relative_to(_HERE) and "place" in item.fixturenames:
            of_turn = in_turn(crc32(item.originalname.encode()), PLACES[:2])
            chosen = ("on Spark",) if "asks_spark" in item.fixturenames else of_turn
            if item.callspec.params["place"] not in chosen:
                item.add_marker(pytest.mark.extended)


@pytest.fixture
def asks_spark() -> None:
    """Choose Spark as the place, for a test that looks at Spark's session."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the verdicts are checked. Files are named where Spark cannot go."""
    chosen: str = request.param
    if chosen != "in memory":
        monkeypatch.setattr(validate, "FEW_ROWS", -1)
    if chosen == "on Spark by names":
        monkeypatch.setattr(stored_frames, "is_object_store", lambda _: True)
    return chosen


def stored(verdicts: Sequence[str], buckets: Sequence[str]) -> StoredVerdicts:
    """Name files by their full names."""
    verdicts, buckets = ([path.lstrip("/") for path in paths] for paths in (verdicts, buckets))
    return StoredVerdicts(storage=Storage(root="/"), verdicts=verdicts, buckets=buckets)


@pytest.fixture(scope="session")
def pipeline() -> Pipeline:
    remedies = Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.REPORT)
    return Pipeline(
        name="flights",
        points={
            "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="ops.out", key=("id",)),
            "flights": TopicPoint(name="flights", connection="kafka", topic="flights", key=("$.id",)),
            "warehouse": TablePoint(
                name="warehouse", kind=PointKind.STORE, connection="db", table="dw.in", key=("id",)
            ),
        },
        hops=tuple(Hop(source=hop.split("→")[0], target=hop.split("→")[1], remedies=remedies) for hop in HOPS),
    )


@pytest.fixture
def rows() -> list[Row]:
    """Every key of both hops, matched."""
    return [(hop, hashlib.md5(str(key).encode()).hexdigest(), "matched", None) for hop in HOPS for key in range(KEYS)]


@pytest.fixture
def summaries() -> list[HopSummary]:
    """Return what the snapshots say of those rows."""
    outbox = PointEvidence(point="outbox", has_manifest=True, rows_read=KEYS, rows_counted=KEYS)
    warehouse = replace(outbox, point="warehouse")
    accounting = Accounting(span=KEYS + 1, data=KEYS, control=1)
    flights = PointEvidence(point="flights", has_manifest=True, rows_read=KEYS, accounting=accounting)
    counts = HopCounts(source_keys=KEYS, source_rows=KEYS, target_rows=KEYS, matched=KEYS)
    ends = ((outbox, flights), (flights, warehouse))
    return [
        HopSummary(hop=hop, counts=counts, expected_rows=KEYS, source=source, target=target, handovers_written=0)
        for hop, (source, target) in zip(HOPS, ends, strict=True)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Write rows as verdict files, one per hop (rows without a known hop go to the second), all of one bucket, of which
    no key is clean; name the files of verdicts and of buckets."""

    def write(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
        folder = tmp_path / "storage" / "flights" / "window=1" / "revision=0" / "a verdict"
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, hop in enumerate(HOPS):
            of_hop = [row for row in rows if (row[0] == hop if number == 0 else row[0] != HOPS[0])]
            rows_of_file = [(*row, "00") for row in of_hop]
            columns = [pa.array([row[place] for row in rows_of_file], pa.string()) for place in range(5)]
            files.append(str(folder / f"{number}.parquet"))
            pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), files[-1])
        return files, [one_bucket(tmp_path)]

    return write


def one_bucket(folder: Path) -> str:
    """Write the rows of one bucket per hop, which has all keys; name the file."""
    file = folder / "one_bucket.parquet"
    pl.DataFrame([(hop, "00", 0, KEYS) for hop in HOPS], schema=BUCKETS, orient="row").write_parquet(file)
    return str(file)


@pytest.fixture
def store_clean(tmp_path: Path) -> StoreClean:
    """Write the rows of some keys with their buckets, and the rows of the buckets; name the files of both."""

    def write(rows: Sequence[BucketedRow], buckets: Sequence[BucketRow]) -> tuple[list[str], list[str]]:
        names = [str(tmp_path / name) for name in ("verdicts.parquet", "buckets.parquet")]
        for name, frame in (
            (names[0], pl.DataFrame(rows, schema=VERDICTS, orient="row")),
            (names[1], pl.DataFrame(buckets, schema=BUCKETS, orient="row")),
        ):
            frame.write_parquet(name)
        return names[:1], names[1:]

    return write
