"""Test that a good file becomes the model; `test_mistakes` is about the others."""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import (
    find_pipeline,
    load_pipeline,
    read_pipelines,
    scheduled_pipelines,
)
from makewhole.model.errors import ConfigurationError
from makewhole.model.gate import Gate
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.time_limits import TimeLimits

pytestmark = pytest.mark.unit

OBSERVE = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT, unexpected=Remedy.REPORT)
FULL = """\
version: 2
pipeline: daily_flights
description: Departures, from the airline's outbox to the warehouse
schedule: "0 2 * * *"
start: 2013-01-01T02:00:00+02:00
settle: 90s
pending: {max_age: 36h}
late: 3d
history: 400d
compare: {dep_delay: "decimal( 6, 1 )", tailnum: string}
points:
  outbox:
    kind: ledger
    connection: airline_db
    table: ops.departures
    key: [time_hour, carrier, flight]
    time: recorded_at
    version: revision
    payload: body
    record_key: flight
  flights:
    kind: topic
    connection: kafka_main
    topic: flights
    value: json
    key: ["$.time_hour", kafka.key, "header:flight"]
    version: $.revision
  warehouse:
    kind: store
    connection: warehouse_db
    table: departures
    key: [time_hour, carrier, flight]
    time: loaded_at
hops:
  - from: outbox
    to: flights
    where: cancelled = false and carrier = 'UA'
  - from: flights
    to: warehouse
    consumer_group: dw-loader
    compensation: {missing: upsert, duplicate: quarantine}
gate: {tolerance: {missing: 1, duplicate: 2, mismatched: 3, unexpected: 4, pending: 5}, allow_empty: true}
compensation:
  missing: redeliver
  mismatched: upsert
  limits: {actions: 5, share: 1, records_per_second: 7}
  approval: {above_actions: 0, by: oncall, expires: 2d, four_eyes: true}
"""


def test_a_minimal_file_has_safe_defaults(write: Callable[..., Path], minimal: str) -> None:
    assert load_pipeline(write(minimal)) == Pipeline(
        name="flights",
        points={
            "outbox": TablePoint(
                name="outbox",
                kind=PointKind.LEDGER,
                connection="airline_db",
                table="ops.departures",
                key=("flight_id",),
                time="recorded_at",
            ),
            "flights": TopicPoint(name="flights", connection="kafka_main", topic="flights", key=("$.flight_id",)),
            "warehouse": TablePoint(
                name="warehouse",
                kind=PointKind.STORE,
                connection="warehouse_db",
                table="dw.departures",
                key=("flight_id",),
            ),
        },
        hops=(
            Hop(source="outbox", target="flights", remedies=OBSERVE),
            Hop(source="flights", target="warehouse", remedies=OBSERVE),
        ),
        schedule=None,
        start=None,
        settle=timedelta(minutes=5),
        pending_max_age=timedelta(days=1),
        late=timedelta(days=1),
    )


def test_every_key_of_a_full_file_reaches_the_model(write: Callable[..., Path]) -> None:
    assert load_pipeline(write(FULL)) == Pipeline(
        name="daily_flights",
        description="Departures, from the airline's outbox to the warehouse",
        schedule="0 2 * * *",
        start=datetime(2013, 1, 1, tzinfo=UTC),
        settle=timedelta(seconds=90),
        pending_max_age=timedelta(hours=36),
        late=timedelta(days=3),
        history=timedelta(days=400),
        compare={"dep_delay": "decimal(6,1)", "tailnum": "string"},
        points={
            "outbox": TablePoint(
                name="outbox",
                kind=PointKind.LEDGER,
                connection="airline_db",
                table="ops.departures",
                key=("time_hour", "carrier", "flight"),
                time="recorded_at",
                version="revision",
                payload="body",
                record_key="flight",
            ),
            "flights": TopicPoint(
                name="flights",
                connection="kafka_main",
                topic="flights",
                key=("$.time_hour", "kafka.key", "header:flight"),
                version="$.revision",
            ),
            "warehouse": TablePoint(
                name="warehouse",
                kind=PointKind.STORE,
                connection="warehouse_db",
                table="departures",
                key=("time_hour", "carrier", "flight"),
                time="loaded_at",
            ),
        },
        hops=(
            Hop(
                source="outbox",
                target="flights",
                remedies=OBSERVE,
                where="cancelled = false and carrier = 'UA'",
            ),
            Hop(
                source="flights",
                target="warehouse",
                remedies=Remedies(
                    missing=Remedy.UPSERT,
                    duplicate=Remedy.QUARANTINE,
                    mismatched=Remedy.UPSERT,
                    unexpected=Remedy.REPORT,
                ),
                consumer_group="dw-loader",
            ),
        ),
        gate=Gate(missing=1, duplicate=2, mismatched=3, unexpected=4, pending=5, allow_empty=True),
        limits=Limits(actions=5, share=1.0, records_per_second=7),
        approval=Approval(above_actions=0, by=("oncall",), expires=timedelta(days=2), four_eyes=True),
    )


@pytest.mark.parametrize(
    "written",
    ["2014-01-01T05:00:00Z", '"2014-01-01T05:00:00Z"', "2014-01-01T06:00:00+01:00", "2014-01-01 05:00:00"],
)
def test_the_schedule_ends_at_until_which_is_utc_unless_it_says_otherwise(
    write: Callable[..., Path], written: str, minimal: str
) -> None:
    path = write(minimal.replace("version: 2", f"version: 2\nuntil: {written}", 1))
    assert load_pipeline(path).until == datetime(2014, 1, 1, 5, tzinfo=UTC)


def test_a_pipeline_without_until_goes_on(write: Callable[..., Path], minimal: str) -> None:
    assert load_pipeline(write(minimal)).until is None


def test_a_pipeline_wide_remedy_applies_only_where_it_is_possible(write: Callable[..., Path], minimal: str) -> None:
    pipeline = load_pipeline(write(minimal + "compensation: {missing: redeliver}\n"))
    assert [hop.remedies.missing for hop in pipeline.hops] == [Remedy.REPORT, Remedy.REDELIVER]
    pipeline = load_pipeline(write(minimal + "compensation: {missing: report}\n"))
    assert [hop.remedies.missing for hop in pipeline.hops] == [Remedy.REPORT, Remedy.REPORT]


@pytest.mark.parametrize("semantics", ["event", "upsert"])
@pytest.mark.parametrize(
    ("source", "target"), [("outbox", "flights"), ("flights", "warehouse"), ("outbox", "warehouse")]
)
def test_a_hop_of_a_new_file_only_observes(
    write: Callable[..., Path], minimal: str, source: str, target: str, semantics: str
) -> None:
    points, _, _ = minimal.partition("hops:")
    kept = [
        line
        for line in points.splitlines()
        if not line.startswith("  ") or line.split(":")[0].strip() in (source, target)
    ]
    text = "\n".join([*kept, "hops:", f"  - {{from: {source}, to: {target}, semantics: {semantics}}}", ""])

    assert load_pipeline(write(text)).hops[0].remedies == OBSERVE


def test_of_two_files_that_describe_the_same_pipeline_neither_runs(
    write: Callable[..., Path], tmp_path: Path, minimal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a backup copy is left in the folder, whose name comes first."""
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    text = minimal.replace("pipeline: flights", "pipeline: arrivals")
    copy, file = write(text, "arrivals-old.yaml"), write(f"{text}schedule: '0 2 * * *'\n", "arrivals.yaml")
    problems = "\n".join(
        f"{path}: pipeline (line 2): 'arrivals' is the pipeline of {other} as well, and neither runs. "
        "Give one of them another name, or take a copy out of the folder"
        for path, other in ((copy, file), (file, copy))
    )
    with pytest.raises(ConfigurationError) as caught:
        find_pipeline("arrivals")
    assert str(caught.value) == problems
    pipelines, of_files = read_pipelines([tmp_path])
    assert (pipelines, str(ConfigurationError(of_files))) == ({}, problems)

    [stand_in] = scheduled_pipelines([tmp_path]).values()
    assert (stand_in.name, stand_in.schedule, stand_in.hops) == ("arrivals", "0 2 * * *", ())


def test_one_bad_file_does_not_hide_the_good_ones(write: Callable[..., Path], tmp_path: Path, minimal: str) -> None:
    write(minimal)
    write("", "bad.yaml")
    write("not a pipeline", "notes.txt")
    pipelines, problems = read_pipelines([tmp_path, tmp_path / "gone"])
    assert list(pipelines) == ["flights"]
    assert [str(problem) for problem in problems] == [
        f"{tmp_path / 'gone'}: folder: does not exist. Create it, or take it out of MAKEWHOLE_PIPELINES",
        f"{tmp_path / 'bad.yaml'}: line 1: is empty. Describe a pipeline in it; docs/pipeline-file.md has an example",
    ]


@pytest.mark.parametrize(
    ("text", "schedule", "until"),
    [
        ("version: 2\npipeline: bad\nschedule: '0 2 * * *'\nuntil: 2013-02-01\npoints: {}\n", "0 2 * * *", 2013),
        ("version: 2\npipeline: bad\nschedule: never\n", "@daily", None),
        ("version: 2\npipeline: bad\n", None, None),
        ("version: 2\npipeline: 'bad' # ours\nschedule: '0 2 * * *'\npoints: {outbox: [\n", "@daily", None),
    ],
)
def test_a_bad_file_keeps_its_dag_and_its_times(
    write: Callable[..., Path], tmp_path: Path, minimal: str, text: str, schedule: str | None, until: int | None
) -> None:
    write(minimal)
    write(text, "bad.yaml")
    write("pipeline: [\n", "nameless.yaml")
    scheduled = scheduled_pipelines([tmp_path])
    assert list(scheduled) == ["bad", "flights"]
    bad = scheduled["bad"]
    assert (bad.schedule, bad.until and bad.until.year, bad.hops) == (schedule, until, ())
    assert scheduled["flights"].hops


def test_a_bad_file_is_refused_by_its_own_problems_alone(
    write: Callable[..., Path], tmp_path: Path, minimal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))
    bad = write(minimal.replace("pipeline: flights", "pipeline: bad").replace("version: 2", "version: 7"), "bad.yaml")
    write("pipeline: [\n", "other.yaml")
    with pytest.raises(ConfigurationError) as caught:
        find_pipeline("bad")
    assert str(caught.value) == (
        f"{bad}: version (line 1): is 7, which this makewhole does not read. Write 'version: 2'"
    )


def test_reading_imports_nothing_heavy() -> None:
    code = "import sys, makewhole.config.pipeline_file; print(' '.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"pandas", "pyarrow", "polars", "numpy", "pyspark", "airflow", "great_expectations", "psycopg2"}


def test_a_file_is_read_in_milliseconds(write: Callable[..., Path]) -> None:
    path = write(FULL)
    begun = time.process_time()
    for _ in range(20):
        load_pipeline(path)
    assert (time.process_time() - begun) / 20 < 0.02


def test_times_of_retries_and_steps_are_read_and_others_keep_their_defaults(
    write: Callable[..., Path], minimal: str
) -> None:
    text = minimal + "settle: 3d\nretry_for: 12h\ntime_limits: {snapshot: 2d, certify: 5m}\n"
    pipeline = load_pipeline(write(text))
    assert (pipeline.settle, pipeline.retry_for) == (timedelta(days=3), timedelta(hours=12))
    assert pipeline.time_limits == TimeLimits(snapshot=timedelta(days=2), certify=timedelta(minutes=5))
    assert pipeline.time_limits.longest == timedelta(days=2)
    assert load_pipeline(write(minimal)).retry_for == timedelta(hours=6)
