"""Test medians, pairs and the page that is made of them."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Measured, Results, Series, as_json, from_json, ratio
from bench.plan import full, quick, tiny
from bench.report.page import page
from bench.topics.reads import CONNECTOR, KAFKA_LOG
from bench.topics.snapshots import BY_HAND, MAKEWHOLE
from bench.windows.duel import DATACOMPY, UNCHANGED, WINDOW, Duel
from bench.windows.latency import COLUMNS, LATENCY
from bench.windows.on_cluster import CLUSTER, CLUSTER_WINDOW, LOCAL
from bench.windows.orders import LEDGER_HOP, STORE_HOP, Orders
from bench.windows.service import Service
from bench.windows.stage import Stage

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


def series(part: str, side: str, seconds: list[float], cold: float | None = None, data: DataSet = DATA) -> Series:
    first = None if cold is None else cost(cold)
    return Series(part=part, side=side, data=data, cold=first, warm=[cost(second) for second in seconds])


def measured(measured_series: list[Series], **machine: str) -> Results:
    return {"windows": Measured(day="2026-11-24", load=0.25, machine=machine, series=measured_series)}


def test_what_was_measured_comes_back_from_its_file() -> None:
    measured_series = [series("read", KAFKA_LOG, [1.0, 2.0], cold=4.0), series("scan", "checked", [0.1])]
    results = measured(measured_series, cores="2")

    assert from_json(json.loads(json.dumps(as_json(results)))) == results


def test_parts_of_one_machine_stand_together() -> None:
    duels, other = (measured([], cores=cores)["windows"] for cores in ("2", "4"))

    text = page({"duels": duels, "windows": other, "scale": replace(duels, day="2026-11-25", load=1.0)})

    head = "\n\n| | |\n|---|---|\n| cores"
    assert f"duels (2026-11-24, load before it 0.2), scale (2026-11-25, load before it 1.0):{head} | 2 |" in text
    assert f"windows (2026-11-24, load before it 0.2):{head} | 4 |" in text


def test_ratios_are_of_runs_that_followed_each_other() -> None:
    ours, theirs = series("read", KAFKA_LOG, [1.0, 10.0, 2.0]), series("read", CONNECTOR, [2.0, 30.0, 3.0])

    assert ratio(ours, theirs, "wall_seconds") == 2.0
    assert ours.median("cpu_seconds") == 3.0
    assert ours.range("wall_seconds") == (1.0, 10.0)
    assert ours.records_per_second == 1_000_000


def test_the_page_has_a_row_for_every_series() -> None:
    measured_series = [
        *(series(part, KAFKA_LOG, [1.0, 1.5, 2.0], cold=4.0) for part in ("read", "write")),
        *(series(part, CONNECTOR, [2.0, 3.0, 4.0], cold=3.0) for part in ("read", "write")),
        series("scan", "checked", [0.1]),
        series("snapshot", MAKEWHOLE, [1.0], cold=9.0),
        series("snapshot", BY_HAND, [3.0], cold=7.0),
        *(series(LATENCY + name, "makewhole", [float(at)]) for at, name in enumerate(COLUMNS)),
    ]

    text = page(measured(measured_series, cores="2"))

    assert "windows (2026-11-24, load before it 0.2):" in text
    assert "| cores | 2 |" in text
    assert (
        "| 2 M × 110 B, lz4 | 1.50 (1.00–2.00) | 3.00 (2.00–4.00) | **2.00** | 1.33 | 0.67 | 2.00 | 4.00 against 3.00 |"
    ) in text
    assert "| 2 M × 110 B, lz4 | checked | 0.10 (0.10–0.10) | 20.00 | 13.33 |" in text
    assert (
        "| 2 M × 110 B, lz4 | 1.00 (1.00–1.00) | 3.00 (3.00–3.00) | **3.00** | **2.00** | 1.33 | 3.00 "
        "| 0 with the archive, 0 without | 9.00 against 7.00 |"
    ) in text
    seconds = " | ".join(f"{at}.00 ({at}.00–{at}.00)" for at in range(len(COLUMNS)))
    assert f"| 2 M | {seconds} |" in text
    assert "| orders | open_window s | settle s | snapshot s | reconcile s | validate s | between them s |" in text
    assert text.count(LATENCY) == 0
    assert "| snapshot | makewhole | 2 M × 110 B, lz4 | 9 | 1024 |" in text


def test_the_cost_of_a_record_is_shown_at_every_size_beside_the_first() -> None:
    measured_series = [
        series("scale 0.01%", "makewhole", [30.0, 29.0, 40.0], data=DataSet(records=10_000_000)),
        series("scale 0.01%", "makewhole", [180.0], data=DataSet(records=50_000_000)),
    ]

    text = page(measured(measured_series))

    assert "| 10 M | 0.01% | 30.00 (29.00–40.00) | 3.00 | **1.00** | 4.50 | 1.00 | 1064 |" in text
    assert "| 50 M | 0.01% | 180.00 (180.00–180.00) | 3.60 | **1.20** | 5.40 | 1.20 | 1204 |" in text
    assert text.count("scale 0.01%") == 0


def test_a_window_on_a_cluster_is_shown_beside_one_application() -> None:
    part = f"{CLUSTER_WINDOW}0.01%"
    measured_series = [series(part, LOCAL, [10.0, 12.0]), series(part, CLUSTER, [15.0, 24.0])]

    text = page(measured(measured_series))

    assert (
        "| orders | keys wrong | local[2] s | two workers s | × time | local[2] processor time s "
        "| two workers processor time s | × processor time | local[2] peak MiB | two workers peak MiB |"
    ) in text
    assert (
        "| 2 M | 0.01% | 11.00 (10.00–12.00) | 19.50 (15.00–24.00) | **1.75** | 16.5 | 29.2 | 1.75 | 1036 | 1048 |"
    ) in text
    assert text.count(part) == 0


def test_every_side_of_a_window_is_shown_beside_makewhole_with_its_first_run_apart() -> None:
    part = f"{WINDOW}0.01%"
    measured_series = [
        series(part, "makewhole", [10.0, 12.0], cold=14.0),
        series(part, "by hand", [15.0, 24.0], cold=35.0),
        series(part, DATACOMPY, [80.0, 84.0], cold=105.0),
        series(part, "makewhole", [40.0], data=DataSet(records=10_000_000)),
    ]

    text = page(measured(measured_series))

    assert (
        "| orders | keys wrong | side | s | × time | first run s | × first run | processor time s "
        "| × processor time | peak MiB |\n|---|---|---|---|---|---|---|---|---|---|\n"
        "| 2 M | 0.01% | makewhole | 11.00 (10.00–12.00) | **1.00** | 14.00 | **1.00** | 16.5 | 1.00 | 1038 |\n"
        "| 2 M | 0.01% | by hand | 19.50 (15.00–24.00) | **1.75** | 35.00 | **2.50** | 29.2 | 1.75 | 1059 |\n"
        "| 2 M | 0.01% | datacompy | 82.00 (80.00–84.00) | **7.50** | 105.00 | **7.50** | 123.0 | 7.50 | 1129 |\n"
        "| 10 M | 0.01% | makewhole | 40.00 (40.00–40.00) | **1.00** |  |  | 60.0 | 1.00 | 1064 |\n"
    ) in text
    assert text.count(part) == 0


def test_verdicts_that_were_not_planted_are_no_measurement() -> None:
    orders = Orders(number=1_000, stride=500)
    service = Service(bootstrap="", dsn="", journal="", folder=Path())
    stage = Stage(service=service, orders=orders, end=datetime.now(UTC))

    stage.require_planted("by hand", {**orders.planted, (STORE_HOP, "pending"): 0})
    with pytest.raises(
        RuntimeError, match=re.escape(f"by hand: orders_1000_500: found {{}}, planted are {orders.planted}")
    ):
        stage.require_planted("by hand", {})


def test_rows_apart_are_those_that_have_no_equal_of_their_own_on_the_other_side() -> None:
    orders = Orders(number=1_508, stride=500)
    points = ledger, topic, store = Counter[str](), Counter[str](), Counter[str]()
    for number in range(1, orders.number + 1):
        copies = {3: (1, 0, 0), 7: (1, 1, 0), 11: (1, 1, 2), 13: (1, 2, 1)}.get(number % orders.stride, (1, 1, 1))
        for point, count in zip(points, copies, strict=True):
            point[f"O{number}"] = count

    alone = [((left - other).total(), (other - left).total()) for left, other in ((ledger, topic), (topic, store))]

    assert alone == [(4, 3), (7, 3)]
    assert orders.rows_apart == {LEDGER_HOP: (*alone[0], 0), STORE_HOP: (*alone[1], 4)}


def test_rows_apart_that_were_not_planted_are_no_measurement() -> None:
    orders = Orders(number=1_000, stride=500)
    service = Service(bootstrap="", dsn="", journal="", folder=Path())
    stage = Stage(service=service, orders=orders, end=datetime.now(UTC))
    counts = {LEDGER_HOP: (2, 2, 0), STORE_HOP: (4, 2, 1)}

    stage.require_rows_apart("datacompy", {**counts, STORE_HOP: (4, 2, 2)})
    with pytest.raises(RuntimeError) as refused:
        stage.require_rows_apart("datacompy", counts)

    assert str(refused.value) == (
        "datacompy: orders_1000_500: found {'ledger→orders': (2, 2, 0), 'orders→store': (4, 2, 1)}, "
        "planted are {'ledger→orders': (2, 2, 0), 'orders→store': (4, 2, 2)}"
    )


def test_the_first_run_of_a_window_is_apart_where_others_follow() -> None:
    first, second, third = (cost(seconds) for seconds in (3.0, 1.0, 2.0))
    orders = Orders(number=1_000, stride=500)

    several = Duel(orders=orders, runs=2, sides=("by hand",)).series("by hand", [first, second, third])
    single = Duel(orders=orders, runs=1, sides=("by hand",)).series("by hand", [first])

    data = DataSet(records=1_000)
    assert several == Series(part="window 1.00%", side="by hand", data=data, cold=first, warm=[second, third])
    assert single == Series(part="window 1.00%", side="by hand", data=data, cold=None, warm=[first])


def test_datacompy_is_measured_up_to_two_million_orders_and_not_where_the_tests_would_install_it() -> None:
    measured = {(duel.orders.number, duel.orders.share_of_faults) for duel in full().windows if DATACOMPY in duel.sides}

    assert measured == {(2_000_000, "0.01%"), (2_000_000, "1.00%")}
    assert [duel.sides for duel in tiny().windows] == [(MAKEWHOLE, UNCHANGED, "by hand")]


def test_a_part_that_compares_sizes_begins_with_the_smallest() -> None:
    for plan in (full(), quick(), tiny()):
        sizes = [orders.number for orders in plan.scales]
        assert sizes == sorted(sizes)
    assert [orders.number for orders in full().scales] == [10_000_000, 50_000_000]


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
