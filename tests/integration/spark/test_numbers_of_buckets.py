"""Test that a window's report does not depend on how many buckets it is read in, nor its neighbours."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import pytest

from makewhole.compute.buckets import named_bucket
from makewhole.journal.database import connect
from makewhole.journal.key_index.runs import IndexedTopic, standing_runs
from makewhole.journal.results import hop_results
from makewhole.key_index.merge import merge_runs
from makewhole.lake.storage import Storage
from makewhole.model.incident import IncidentKind
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot import take
from tests.integration.spark.judged_otherwise import Findings, as_committed
from tests.integration.spark.test_two_passes import DAYS, History, history
from tests.integration.spark.test_what_is_gone import pretend
from tests.world.orders import orders
from tests.world.reports import report
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

__all__ = ["history"]  # a fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

NUMBERS = (1, 2, 16, 64)


def window_report(shop: ReconciledShop, context: WindowContext) -> Mapping[str, Any]:
    """Return all that is reported of a window, and the verdict of each key; not how many keys the first pass took out,
    which the filters beside the key index decide."""
    numbers = dict(report(shop.journal, context))
    summaries = json.loads(numbers.pop("summaries"))
    del numbers["verdicts"]
    committed = as_committed(shop, context)
    verdicts: dict[str, tuple[Mapping[str, str], Findings]] = {
        hop: (judged.verdicts, judged.findings) for hop, judged in committed.items()
    }
    return {
        **numbers,
        "summaries": {hop: {**summary, "clean": None} for hop, summary in summaries.items()},
        "verdicts": verdicts,
        "expected": {hop: sum(judged.expected.values()) for hop, judged in committed.items()},
    }


def differing(numbers: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the parts of two reports that differ."""
    return [name for name in other if numbers[name] != other[name]]


def counts_of_buckets(shop: ReconciledShop, context: WindowContext) -> dict[str, int]:
    return {point: manifest["buckets"] for point, manifest in shop.manifests(context).items()}


def judged_in(shop: ReconciledShop, day: int, buckets: int) -> tuple[WindowContext, Mapping[str, Any]]:
    """Judge a day's window once more, read in so many buckets; return it and what is reported of it."""
    shop.buckets = buckets
    context = shop.judge_and_ask_the_gate(day)
    assert counts_of_buckets(shop, context) == dict.fromkeys(context.pipeline.points, buckets)
    return context, window_report(shop, context)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("history", "of_buckets"),
    [(0, NUMBERS), (1, NUMBERS)],
    indirect=["history"],
)
def test_windows_with_faults_of_every_kind_report_the_same_in_any_number_of_buckets(
    history: History, of_buckets: Sequence[int]
) -> None:
    """Takes long: each of four days is judged as often as there are numbers."""
    shop, last = history.shop, cycle((of_buckets[-1], 1, of_buckets[-2], of_buckets[1]))
    for day in range(DAYS):
        history.play(day)
        # What the next day finds of this one is what was judged last.
        numbers = sorted(of_buckets, key=next(last).__eq__)
        reports = [judged_in(shop, day, number)[1] for number in numbers]
        assert [differing(counts, reports[0]) for counts in reports] == [[]] * len(of_buckets)
        assert reports[0]["findings"].count("\n") > 5


@pytest.mark.extended
@pytest.mark.on_spark
def test_truncated_keys_and_merged_runs_report_the_same_in_any_number_of_buckets(shop: ReconciledShop) -> None:
    """Five days of other numbers, of which four runs are merged; a truncation takes ten records of the first day."""
    made = orders(range(40))
    shop.trade(made, unsent=made[3:4])
    for day, buckets in enumerate((4, 16, 1, 64, 2)):
        shop.trade(orders(range(100 * day + 100, 100 * day + 110), day))
        shop.buckets = buckets
        shop.judge(shop.open(day))
    with connect(shop.journal) as journal:
        index = IndexedTopic(pipeline=shop.pipeline.name, point="orders")
        assert merge_runs(journal, Storage.from_environment(), index) == 1
        runs = {run.windows: {named_bucket(name)[1] for name in run.files} for run in standing_runs(journal, index)}
    assert runs == {(1,): {4}, (2, 3, 4, 5): {1}}
    at = orders([0], 5)[0]["at"]
    shop.send([{**order, "at": at} for order in (made[5], made[6], made[39])])
    shop.trade(orders(range(900, 905), 5))
    cut = shop.open(5)

    reports = []
    for number in NUMBERS:
        shop.buckets = number
        shop.journal_sql("delete from makewhole.incident")  # they get their number of keys once it is known
        pretend(shop, cut, IncidentKind.TRUNCATED, 30, 40, before_it_was_read=False, lineage=0)
        shop.judge(cut)
        shop.validate(cut)
        reports.append(window_report(shop, cut))
        for table in ("hop_result", "slice_count", "snapshot", "finding", "gate_report", "key_run"):
            shop.journal_sql(f"delete from makewhole.{table} where number = {cut.window.number}")
        shop.journal_sql(f"delete from makewhole.handover where from_number = {cut.window.number}")

    assert [differing(numbers, reports[0]) for numbers in reports] == [[]] * len(NUMBERS)
    counts = json.loads(reports[0]["results"])[1][1]
    assert (counts["matched"], counts["missing"], counts["duplicate"]) == (6, 58, 2)


# The number by the size


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Buckets of ten rows."""
    monkeypatch.setattr("makewhole.compute.buckets._ROWS_OF_A_BUCKET", 10)
    yield


def test_a_small_window_is_read_in_one_bucket(shop: ReconciledShop) -> None:
    shop.trade(orders(range(30)))
    context = shop.judged()

    manifests = shop.manifests(context)
    assert counts_of_buckets(shop, context) == {"outbox": 1, "orders": 1, "warehouse": 1}
    assert {name for manifest in manifests.values() for name in manifest["files"]} == {"00of1"}


@pytest.mark.extended
@pytest.mark.usefixtures("small_buckets")
def test_the_number_follows_the_offsets_and_what_postgresql_estimates(shop: ReconciledShop) -> None:
    """Takes long: buckets of ten rows are many."""
    shop.sql("analyze outbox")
    shop.sql("analyze warehouse")
    shop.send(orders(range(41)))
    assert set(counts_of_buckets(shop, shop.judged()).values()) == {8}

    shop.write("outbox", orders(range(100, 110), 1))
    shop.write("warehouse", orders(range(100, 290), 1))
    shop.sql("analyze outbox")
    shop.sql("analyze warehouse")
    shop.send(orders(range(100, 110), 1))
    assert set(counts_of_buckets(shop, shop.judged(1)).values()) == {32}

    shop.trade(orders(range(300, 305), 2))
    assert set(counts_of_buckets(shop, shop.judged(2)).values()) == {1}


@pytest.mark.usefixtures("small_buckets")
def test_rows_newer_than_the_statistics_are_taken_for_a_share_of_the_table(shop: ReconciledShop) -> None:
    """The planner takes them for one row, and the producer sent nothing."""
    shop.write("outbox", orders(range(2_000)))
    shop.sql("analyze outbox")
    shop.sql("analyze warehouse")
    shop.send(orders(range(3)))
    shop.buckets = 1
    shop.judged()
    shop.buckets = None
    shop.write("outbox", orders(range(3_000, 3_100), 1))

    assert counts_of_buckets(shop, shop.judged(1))["outbox"] == 4


@pytest.mark.usefixtures("small_buckets")
def test_all_rows_of_a_table_that_was_never_analysed_count(shop: ReconciledShop) -> None:
    """PostgreSQL takes it for ten pages, and half a percent of them for the window's."""
    shop.trade(orders(range(5)))

    assert set(counts_of_buckets(shop, shop.judged()).values()) == {128}


@pytest.mark.usefixtures("small_buckets")
def test_a_revision_and_a_step_that_was_killed_keep_the_number(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.trade(orders(range(41)))
    for table in ("outbox", "warehouse"):
        shop.sql(f"analyze {table}")
    context = shop.open()
    with monkeypatch.context() as patch:
        patch.setattr(take, "read_tables", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            shop.snapshot(context)
    assert counts_of_buckets(shop, context) == {"orders": 8}

    monkeypatch.setattr("makewhole.compute.buckets._ROWS_OF_A_BUCKET", 1)
    shop.judge(context)
    assert counts_of_buckets(shop, context) == {"outbox": 8, "orders": 8, "warehouse": 8}
    again = shop.judged()
    assert (again.window.number, again.window.revision) == (context.window.number, 2)
    assert counts_of_buckets(shop, again) == {"outbox": 8, "orders": 8, "warehouse": 8}


def test_snapshots_with_other_numbers_are_judged_in_the_least(shop: ReconciledShop) -> None:
    """Two processes chose other numbers, and each took some of the snapshots."""
    made = orders(range(60))
    shop.trade(made, unsent=made[5:8], unloaded=made[20:24])
    context = shop.open()
    with connect(shop.journal) as journal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(take, "read_tables", lambda *_: {})
        take.take_snapshots(shop.carrier, journal, context, 2, 4)
    shop.buckets = 16
    shop.judge(context)

    assert counts_of_buckets(shop, context) == {"outbox": 16, "orders": 4, "warehouse": 16}
    assert {key for key, _ in shop.found(context, LEDGER_HOP).items()} == {"O5", "O6", "O7"}
    assert {key for key, _ in shop.found(context, STORE_HOP).items()} == {"O20", "O21", "O22", "O23"}
    with connect(shop.journal) as journal:
        files = hop_results.results(journal, context.window)[STORE_HOP].files["verdicts_by_bucket"]
    assert sorted(files) == ["00of4", "01of4", "02of4", "03of4"]
