"""Test medians, pairs and the page that is made of them."""

import pytest

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series, ratio
from bench.plan import full, quick, tiny
from bench.report.page import page
from bench.topics.reads import CONNECTOR, KAFKA_LOG
from bench.topics.snapshots import BY_HAND, MAKEWHOLE
from bench.windows.latency import COLUMNS, LATENCY

pytestmark = pytest.mark.unit

DATA = DataSet(records=2_000_000)


def cost(seconds: float) -> Cost:
    return Cost(
        wall_seconds=seconds,
        python_cpu_seconds=seconds,
        jvm_cpu_seconds=seconds / 2,
        python_bytes=int(seconds * 2**20),
        jvm_bytes=2**30,
    )


def series(part: str, side: str, seconds: list[float], cold: float | None = None) -> Series:
    first = None if cold is None else cost(cold)
    return Series(part=part, side=side, data=DATA, cold=first, warm=[cost(one) for one in seconds])


def test_ratios_are_of_runs_that_followed_each_other() -> None:
    ours, theirs = series("read", KAFKA_LOG, [1.0, 10.0, 2.0]), series("read", CONNECTOR, [2.0, 30.0, 3.0])

    assert ratio(ours, theirs, "wall_seconds") == 2.0
    assert ours.median("cpu_seconds") == 3.0
    assert ours.range("wall_seconds") == (1.0, 10.0)
    assert ours.records_per_second == 1_000_000


def test_the_page_has_a_row_for_every_series() -> None:
    found = [
        *(series(part, KAFKA_LOG, [1.0, 1.5, 2.0], cold=4.0) for part in ("read", "write")),
        *(series(part, CONNECTOR, [2.0, 3.0, 4.0], cold=3.0) for part in ("read", "write")),
        series("scan", "checked", [0.1]),
        series("snapshot", MAKEWHOLE, [1.0], cold=9.0),
        series("snapshot", BY_HAND, [3.0], cold=7.0),
        *(series(LATENCY + name, "makewhole", [float(at)]) for at, name in enumerate(COLUMNS)),
    ]

    told = page({"cores": "2"}, 0.25, found)

    assert "Load of the machine before the run: 0.2." in told
    assert "| cores | 2 |" in told
    assert (
        "| 2 M × 110 B, lz4 | 1.50 (1.00–2.00) | 3.00 (2.00–4.00) | **2.00** | 1.33 | 0.67 | 2.00 | 4.00 against 3.00 |"
    ) in told
    assert "| 2 M × 110 B, lz4 | checked | 0.10 (0.10–0.10) | 20.00 | 13.33 |" in told
    assert (
        "| 2 M × 110 B, lz4 | 1.00 (1.00–1.00) | 3.00 (3.00–3.00) | **3.00** | **2.00** | 1.33 | 3.00 "
        "| 0 with the archive, 0 without | 9.00 against 7.00 |"
    ) in told
    seconds = " | ".join(f"{at}.00 ({at}.00–{at}.00)" for at in range(len(COLUMNS)))
    assert f"| 2 M | {seconds} |" in told
    assert "| orders | open_window s | settle s | snapshot s | reconcile s | validate s | between them s |" in told
    assert told.count(LATENCY) == 0
    assert "| snapshot | makewhole | 2 M × 110 B, lz4 | 9 | 1024 |" in told


def test_every_plan_begins_with_the_smaller_data_so_that_memory_shows_its_growth() -> None:
    for plan in (full(), quick(), tiny()):
        sizes = [data.records for data in plan.snapshots]
        assert sizes == sorted(sizes)


def test_only_what_the_asked_parts_read_is_filled_and_that_once() -> None:
    for plan in (full(), quick(), tiny()):
        every = plan.topics(["duels", "scans", "snapshots", "replays", "upserts"])
        assert len({data.topic for data in every}) == len(every)
        assert plan.topics(["replays", "upserts"]) == []
    assert set(full().topics(["scans"])) < set(full().topics(["duels", "scans", "snapshots"]))
