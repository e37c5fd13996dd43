"""Test windows in DAGs of people's own, one of whose tasks is killed; and a consumer of proven data."""

from collections import Counter
from collections.abc import Mapping

import pytest

from examples.flights.settings import FIRST_DAY, day_after, day_start
from tests.e2e.scenarios.own_dags import Consumed, OwnDag
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import ScenarioShop, moment_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_a_window_of_a_scheduled_run_of_ones_own_dag_is_certified(nightly: OwnDag) -> None:
    """Takes long: a window is waited for. Its schedule is a cron string, whose runs are of a moment."""
    assert (nightly.window["state"], nightly.window["revision"], nightly.window["from"]) == ("certified", 1, None)
    assert moment_of(nightly.window["to"]) == STARTED
    assert nightly.tasks == dict.fromkeys(nightly.tasks, "success") | dict.fromkeys(
        ("approve", "report_watermark"), "skipped"
    )


def test_the_tasks_around_the_window_run_once_before_it_and_behind_its_certificate(nightly: OwnDag) -> None:
    (load, _, _), (report, reported_at, orders) = nightly.done
    assert (load, report, orders) == ("load", "report", ORDERS)
    assert reported_at > nightly.certified_at


def test_a_repair_whose_process_was_killed_is_tried_again_and_repairs_once(
    nightly: OwnDag, shops: Mapping[str, ScenarioShop]
) -> None:
    shop = shops["nightly"]
    assert nightly.tries["compensate"] == 2
    assert (nightly.chain, nightly.plans) == ([(1, 1, "certificate")], [(1, "done")])
    assert shop.is_whole()
    assert shop.copies() == Counter({f"O{number}": 1 for number in range(ORDERS)} | {"O11": 2})
    assert list(shop.lineage().values()) == [{"O11"}]
    kept = shop.sql("select row ->> 'id' from makewhole.quarantine where source_table like %s", "%nightly.%")
    assert kept == [("O55",)]


def test_a_consumer_runs_once_for_a_proven_window_and_computes_what_is_proven(consumed: Consumed) -> None:
    """Takes long: four windows are waited for."""
    assert consumed.first.runs == ("success",)
    assert consumed.first.table == consumed.first.proven != []


def test_a_consumer_does_not_run_for_a_window_with_gaps(consumed: Consumed) -> None:
    assert consumed.gaps.runs == ("success",)
    assert consumed.gaps.table == consumed.first.table


def test_a_consumer_is_red_when_a_certificate_is_revoked_and_computes_nothing(consumed: Consumed) -> None:
    assert consumed.revoked.runs == ("success", "failed")
    assert "the first window of flights is not certified: no data is proven" in consumed.revoked_log
    assert consumed.revoked.table == consumed.first.table


def test_a_consumer_computes_again_what_was_revoked_and_certified_since(consumed: Consumed) -> None:
    assert consumed.certified_again.runs == ("success", "failed", "success")
    assert consumed.certified_again.table == consumed.certified_again.proven == consumed.first.proven
    end = day_start(day_after(FIRST_DAY)).isoformat()
    assert (consumed.again["start"], consumed.again["until"]) == (None, end)  # the first window has no start
