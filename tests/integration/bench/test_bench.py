"""Test the benchmarks from end to end on little data: they run and both sides agree, never how fast."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import plan
from bench.measuring.data_set import DataSet
from bench.measuring.results import Measured, Series
from bench.repairs.findings import FINDINGS, SPARK, STEPS
from bench.report.page import page
from bench.run import Bench
from bench.topics import fill
from bench.topics.elements import ELEMENTS, EXPLODE
from bench.topics.reads import CONNECTOR, KAFKA_LOG
from bench.windows.duel import UNCHANGED
from bench.windows.history import EARLY, HISTORY
from bench.windows.latency import COLUMNS, LATENCY
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

_MIB = 2**20
_MOST_MIB = {
    **dict.fromkeys(("plan", "verify"), 600),
    **dict.fromkeys(("dry_run", "approve", "compensate", "certify"), 520),
}
"""The most that a step may hold. Python with what it imports takes up to 300 of these; from machine to machine the same
step differs by up to 60."""


def _page(series: Sequence[Series]) -> str:
    return page({"windows": Measured(day="2026-11-24", load=0.0, machine={}, series=series)})


def test_every_part_runs_and_gives_its_rows(kafka: KafkaServer, tmp_path: Path) -> None:
    tiny, lines = plan.tiny(), list[str]()
    filled = tiny.topics(["duels", "scans", "snapshots"])
    for content in filled:
        fill.fill(kafka.bootstrap, content, lambda _: None)
    bench = Bench(bootstrap=kafka.bootstrap, plan=tiny, folder=tmp_path, report=lines.append)
    try:
        series = [*bench.duels(), *bench.scans(), *bench.snapshots(), *bench.replays(), *bench.windows()]
    finally:
        for content in filled:
            fill.remove(kafka.bootstrap, content.topic)

    assert [(measurement.part, measurement.side) for measurement in series] == [
        ("read", KAFKA_LOG),
        ("read", CONNECTOR),
        ("write", KAFKA_LOG),
        ("write", CONNECTOR),
        ("scan", "checked"),
        ("scan", "not checked"),
        ("snapshot", "makewhole"),
        ("snapshot", "by hand"),
        ("replay", "makewhole"),
        ("replay", "plain producer"),
        ("window 1.00%", "makewhole"),
        ("window 1.00%", UNCHANGED),
        ("window 1.00%", "by hand"),
    ]
    assert all(cost.cpu_seconds > 0 for measurement in series for cost in measurement.warm)
    snapshot = next(measurement for measurement in series if measurement.part == "snapshot")
    assert snapshot.peak("python_bytes") > 0 < snapshot.peak("jvm_bytes")
    assert _page(series).count("20 k × 110 B, lz4") == 14
    assert [_page(series).count(f"| 20 k | 1.00% | {side} |") for side in ("makewhole", "by hand")] == [1, 1]
    assert any(line.startswith("snapshot") for line in lines)


def test_binary_values_are_decoded_beside_spark(tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap="", plan=plan.tiny(), folder=tmp_path, report=lines.append).formats())

    assert [(measurement.part, measurement.side, len(measurement.warm)) for measurement in series] == [
        ("format avro", "makewhole", 1),
        ("format avro", "from_avro", 1),
        ("format protobuf", "makewhole", 1),
    ]
    assert all(cost.cpu_seconds > 0 for measurement in series for cost in measurement.warm)
    assert [_page(series).count(f"| {form} | 20 k | makewhole |") for form in ("avro", "protobuf")] == [1, 1]


def test_records_are_divided_beside_spark(tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap="", plan=plan.tiny(), folder=tmp_path, report=lines.append).elements())

    assert [
        (measurement.part, measurement.side, measurement.data.records, len(measurement.warm)) for measurement in series
    ] == [
        (f"{ELEMENTS}{form}", side, 20_000, 1)
        for form in ("json", "avro", "protobuf", "connect", "debezium")
        for side in ("makewhole", EXPLODE)
        if (form, side) != ("protobuf", EXPLODE)
    ]
    assert all(cost.cpu_seconds > 0 for measurement in series for cost in measurement.warm)
    assert _page(series).count("| 20 k | 4 | ") == 5
    assert not list(tmp_path.glob("elements*.parquet"))


def test_sizes_that_are_far_apart_are_measured_alone(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap=kafka.bootstrap, plan=plan.tiny(), folder=tmp_path, report=lines.append).scale())

    assert [
        (measurement.part, measurement.side, measurement.data.records, len(measurement.warm)) for measurement in series
    ] == [
        ("scale 1.00%", "makewhole", 4_000, 1),
        ("scale 1.00%", "makewhole", 20_000, 1),
    ]
    assert all(measurement.peak("python_bytes") > 0 < measurement.peak("jvm_bytes") for measurement in series)
    assert _page(series).count("| 20 k | 1.00% |") == 1
    assert [line.split(":")[1][:10] for line in lines] == [" snapshot "] * 2
    assert not list(tmp_path.iterdir())


def test_a_window_on_a_cluster_is_measured_beside_one_application(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap=kafka.bootstrap, plan=plan.tiny(), folder=tmp_path, report=lines.append).cluster())

    assert [
        (measurement.part, measurement.side, measurement.data.records, len(measurement.warm)) for measurement in series
    ] == [
        ("cluster 1.00%", "local[2]", 20_000, 1),
        ("cluster 1.00%", "two workers", 20_000, 1),
    ]
    alone, many = series
    assert many.median("jvm_cpu_seconds") > 1.2 * alone.median("jvm_cpu_seconds")  # each executor is a machine of Java
    assert many.peak("jvm_bytes") > alone.peak("jvm_bytes")
    assert _page(series).count("| 20 k | 1.00% |") == 1
    assert [line.split(":")[1][:10] for line in lines] == [" snapshot "] * 2


def test_a_small_window_is_timed_step_by_step_through_airflow(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap=kafka.bootstrap, plan=plan.tiny(), folder=tmp_path, report=lines.append).latency())

    assert [
        (measurement.part.removeprefix(LATENCY), measurement.data.records, len(measurement.warm))
        for measurement in series
    ] == [(name, 1_000, 1) for name in COLUMNS]
    seconds = [measurement.median("wall_seconds") for measurement in series]
    assert seconds[-1] == pytest.approx(sum(seconds[:-1]))
    assert [line.endswith("(not counted)") for line in lines] == [True, False]
    assert _page(series).count("| 1 k |") == 1


def test_a_late_day_is_measured_beside_an_early_one(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()

    series = list(Bench(bootstrap=kafka.bootstrap, plan=plan.tiny(), folder=tmp_path, report=lines.append).history())

    assert [(measurement.part, measurement.data.records, len(measurement.warm)) for measurement in series] == [
        (f"{HISTORY}{EARLY}", 1_000, 1),
        (f"{HISTORY}50", 1_000, 1),
    ]
    assert "| 1 k | 2 | 50 |" in _page(series)
    assert any("49 days: 49,000 rows in " in line for line in lines)


def test_many_findings_are_repaired_and_certified_in_flat_memory(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()
    filled = DataSet(records=20_000).topic  # as the other parts do in one run
    fill.make_topic(kafka.bootstrap, filled)

    try:
        series = list(
            Bench(bootstrap=kafka.bootstrap, plan=plan.tiny(), folder=tmp_path, report=lines.append).findings()
        )
    finally:
        fill.remove(kafka.bootstrap, filled)

    assert [(measurement.part.removeprefix(FINDINGS), measurement.data.records) for measurement in series] == [
        (name, 20_000) for name in (SPARK, *STEPS)
    ]
    said = dict(zip((SPARK, *STEPS), (line.split(": ", 1)[1] for line in lines), strict=True))
    assert said["plan"].startswith("0 refusals, plan bench-1-")
    assert {name: said[name] for name in STEPS if name != "plan"} == {
        "dry_run": "19999 upsert: 19999 would be done",
        "approve": "approved",
        "compensate": "2 chunks, 19999 actions",
        "verify": "19999 of 19999 whole, PASS",
        "certify": "certified",
    }
    peaks = {measurement.part.removeprefix(FINDINGS): measurement.peak("python_bytes") / _MIB for measurement in series}
    assert {name: peak for name, peak in peaks.items() if name in STEPS and peak > _MOST_MIB[name]} == {}
    assert _page(series).count("| 20 k | plan | ") == 1
