"""Test windows that Airflow begins: on schedule, by backfill, by the on-call form; and what they leave behind."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from tests.e2e.scenarios.failures import Broken
from tests.e2e.scenarios.pipeline_files import ACTIONS, DAY, FIRST_DAY, MISTAKES, ORDERS, STARTED
from tests.e2e.scenarios.unattended import Backfilled, Scheduled
from tests.e2e.shop import ScenarioShop, moment_of
from tests.e2e.stage import Run, Stage, until, utc
from tests.world.people import TakenPosts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SKIPPED_WITHOUT_GAPS = ("approve", "compensate", "verify", "report_watermark")
WAY = ("open_window", "settle", "snapshot", "reconcile", "validate", "plan", "certify")


def names(numbers: tuple[int, ...]) -> set[str]:
    return {f"O{number}" for number in numbers}


# On schedule


def test_the_scheduler_runs_the_interval_that_has_just_ended_and_certifies_it(scheduled: Scheduled) -> None:
    assert scheduled.run["run_type"] == "scheduled"
    assert moment_of(scheduled.run["data_interval_start"]) == STARTED - DAY
    assert moment_of(scheduled.run["data_interval_end"]) == STARTED
    window = scheduled.window
    assert (window["window"], window["revision"], window["state"], window["reason"]) == (1, 1, "certified", None)
    assert moment_of(window["to"]) == STARTED
    assert (window["gate"], window["plan"]) == ("PASS", None)
    judged = {(hop["from"], hop["to"]): hop["counts"] for hop in window["hops"]}
    assert set(judged) == {("outbox", "orders"), ("orders", "warehouse")}
    assert all((counts["source_keys"], counts["matched"]) == (ORDERS, ORDERS) for counts in judged.values())


def test_a_window_without_gaps_has_no_plan_and_its_task_says_so(scheduled: Scheduled, stage: Stage) -> None:
    run = Run(dag=scheduled.run["dag_id"], id=scheduled.run["dag_run_id"])
    assert "the gate says PASS: nothing to plan" in stage.log(run, "plan")


def test_the_note_of_the_run_is_its_result_in_one_line(scheduled: Scheduled) -> None:
    assert scheduled.note == "window 1 (revision 1) of scheduled: certified; certificate 1"


def test_the_last_task_links_to_a_page_with_its_findings_and_certificate(scheduled: Scheduled, stage: Stage) -> None:
    page = (
        f"{stage.status['airflow']['url']}/makewhole/dags/{scheduled.run['dag_id']}/runs/{scheduled.run['dag_run_id']}"
    )
    parts = {"Findings": "findings", "Plan": "plan", "Certificate": "certificate", "Runbook": "runbook"}
    assert scheduled.links == {name: f"{page}#{part}" for name, part in parts.items()}
    shown = stage.client().get(page).raise_for_status().text
    assert "Window 1 (revision 1) of scheduled" in shown
    assert scheduled.window["certificate"]["uri"] in shown
    assert "runbook.md#a-window-is-certified" in shown
    runbook = stage.client().get(page.split("/dags/")[0] + "/docs/runbook.md").raise_for_status().text
    assert '<h3 id="a-window-is-certified">' in runbook


def test_pages_are_for_those_whom_airflow_knows(scheduled: Scheduled, stage: Stage) -> None:
    page = scheduled.links["Findings"]
    for address in (page, page.split("/dags/")[0] + "/docs/runbook.md"):
        assert httpx.get(address, trust_env=False).status_code == 401
    assert stage.client().get(page.replace("/runs/", "/runs/no_")).status_code == 404


def test_openlineage_gets_the_rows_of_each_point_and_what_holds_of_each_hop(
    scheduled: Scheduled, lineage: TakenPosts
) -> None:
    job = f"{scheduled.run['dag_id']}.certify"

    def completed() -> Mapping[str, Any] | None:
        events = (event for _, event in lineage.posts if event["job"]["name"] == job)
        return next((event for event in events if event["eventType"] == "COMPLETE"), None)

    event = until(completed, 30, lambda: f"an event of {job}")
    facets = {dataset["name"]: dataset["inputFacets"] for dataset in event["inputs"]}
    tables = [f"local.scheduled.{table}" for table in ("outbox", "warehouse")]
    assert sorted(facets) == sorted(["scheduled-orders", *tables])
    assert {name: its["dataQualityMetrics"]["rowCount"] for name, its in facets.items()} == dict.fromkeys(
        facets, ORDERS
    )
    held = {
        name: {item["assertion"]: item["success"] for item in its["dataQualityAssertions"]["assertions"]}
        for name, its in facets.items()
    }
    assert all(all(assertions.values()) for assertions in held.values())
    assert held[tables[0]] == {"certified": True}
    assert {"outbox-orders.judged", "outbox-orders.missing", "certified"} < set(held["scheduled-orders"])
    assert [(output["namespace"], output["name"]) for output in event["outputs"]] == [
        ("makewhole", "certified/scheduled")
    ]


def test_the_result_of_the_last_task_says_how_far_the_proof_reaches(scheduled: Scheduled) -> None:
    certificate = scheduled.window["certificate"]
    assert scheduled.certified == {
        "digest": certificate["digest"],
        "certificate": certificate["uri"],
        "handed_over": 0,
        "accepted": 0,
        "reach": "ledger",
        "cannot_exclude": ["not_in_ledger"],
        "older_open": {"windows": 0, "findings": 0},
    }
    assert certificate["reach"]["from"] == "ledger"


def test_the_same_window_again_changes_nothing_and_certifies_the_same_digest(
    scheduled: Scheduled, stage: Stage
) -> None:
    assert scheduled.exit_code == 0
    again, first = scheduled.again, scheduled.window
    assert (again["window"], again["revision"], again["state"]) == (1, 2, "certified")
    assert again["certificate"]["digest"] == first["certificate"]["digest"]
    assert again["certificate"]["sha256"] != first["certificate"]["sha256"]
    assert again["plan"] is None
    assert scheduled.after_again == scheduled.before_again
    chain = stage.run_command("certificate", "verify", "scheduled", "--json")
    assert (chain.code, chain.document["certificates"], chain.document["problems"]) == (0, 2, [])
    assert chain.document["signed_from"] == 1


def test_the_events_of_the_pipelines_asset_keep_the_head_of_the_chain(scheduled: Scheduled, stage: Stage) -> None:
    assert scheduled.exit_code == 0
    events = stage.get("/assets/events", limit=100)["asset_events"]
    heads = {event["extra"]["ordinal"]: event["extra"] for event in events if event["name"] == "makewhole_scheduled"}
    chain = stage.run_command("certificate", "verify", "scheduled", "--json").document
    kept = [f"{ordinal}:{head['sha256']}" for ordinal, head in sorted(heads.items())]

    assert sorted(heads) == [1, 2]
    assert heads[2]["sha256"] == chain["head"]["sha256"]
    assert [head["handed_over"] for head in heads.values()] == [0, 0]
    options = [part for head in kept for part in ("--head", head)]
    assert stage.run_command("certificate", "verify", "scheduled", "--json", *options).code == 0


def test_each_certified_window_is_published_and_reported_to_an_asset(scheduled: Scheduled, stage: Stage) -> None:
    """The first by the pipeline's own DAG, its revision by the on-call form, which publishes what changed: nothing."""
    events = stage.get("/assets/events", limit=100)["asset_events"]
    reported = [event["extra"] for event in events if event["name"] == "makewhole_published_scheduled"]
    points = {(extra["window"], extra["revision"]): extra["points"]["orders"] for extra in reported}
    assert sorted(points) == [(1, 1), (1, 2)]
    assert {(point["records"], point["complete_through"]) for point in points.values()} == {(ORDERS, 1)}
    assert [len(point["published"]) for point in points.values()] == [1, 1]
    first, second = (json.loads(Path(points[1, revision]["manifest"]).read_text()) for revision in (1, 2))
    assert (first["published"], second["published"], second["withdrawn"]) == (ORDERS, 0, 0)
    assert second["files"] == first["files"]
    folder = Path(points[1, 1]["manifest"]).parents[1]
    rows = pl.concat([pl.read_parquet(folder / file["path"]) for file in first["files"]])
    assert sorted(rows["key"]) == sorted(names(tuple(range(ORDERS))))
    listed = stage.run_command("published", "scheduled", "--json").document
    assert (listed["window"], listed["revision"], listed["is_newest"], listed["records"]) == (1, 2, True, ORDERS)


# Backfilled


def test_a_backfill_runs_its_intervals_in_order_and_their_windows_tile(backfilled: Backfilled, stage: Stage) -> None:
    first, second = backfilled.runs
    assert [run["run_type"] for run in backfilled.runs] == ["backfill", "backfill"]
    assert moment_of(first["end_date"]) <= moment_of(second["start_date"])
    assert [(window["window"], window["from"], window["to"]) for window in backfilled.windows] == [
        (1, None, utc(FIRST_DAY + DAY)),
        (2, utc(FIRST_DAY + DAY), utc(FIRST_DAY + 2 * DAY)),
    ]
    ranges = stage.journal(
        "select one.hi, two.lo, one.lo from makewhole.window_range one join makewhole.window_range two using (lane) "
        "where one.pipeline = 'backfilled' and one.number = 1 and two.number = 2"
    )
    assert len(ranges) == 2
    assert all(hi == lo and begin == 0 for hi, lo, begin in ranges)


def test_a_backfilled_day_with_mistakes_is_repaired_and_certified(backfilled: Backfilled, stage: Stage) -> None:
    window = backfilled.windows[0]
    assert (window["state"], window["gate_found"], window["gate"]) == ("certified", "FAIL", "PASS")
    assert (window["plan"]["actions"], window["plan"]["state"]) == (ACTIONS, "done")
    findings = stage.journal(
        "select hop, verdict, key from makewhole.finding where pipeline = 'backfilled' and number = 1 "
        "and outcome in ('repaired', 'contained')"
    )
    planted = {("outbox→orders", "missing", key) for key in names(MISTAKES.never_sent)}
    planted |= {("outbox→orders", "duplicate", key) for key in names(MISTAKES.sent_twice)}
    planted |= {("orders→warehouse", "missing", key) for key in names(MISTAKES.never_loaded)}
    planted |= {("orders→warehouse", "duplicate", key) for key in names(MISTAKES.loaded_twice)}
    assert set(findings) == planted
    assert stage.journal("select count(*) from makewhole.finding where pipeline = 'backfilled'") == [(len(planted),)]
    assert backfilled.tasks[0] == dict.fromkeys((*WAY, "compensate", "verify"), "success") | dict.fromkeys(
        ("approve", "report_watermark"), "skipped"
    )


def test_the_day_after_costs_no_plan_and_takes_no_replay_for_a_duplicate(
    backfilled: Backfilled, shops: Mapping[str, ScenarioShop]
) -> None:
    window = backfilled.windows[1]
    assert (window["state"], window["gate_found"], window["plan"]) == ("certified", "PASS", None)
    assert backfilled.tasks[1] == dict.fromkeys(WAY, "success") | dict.fromkeys(SKIPPED_WITHOUT_GAPS, "skipped")
    plan = backfilled.windows[0]["plan"]["id"]
    replayed = names(MISTAKES.never_sent + MISTAKES.never_loaded)
    assert shops["backfilled"].lineage() == {plan: replayed}


def test_after_the_backfill_plain_clients_find_every_order_everywhere(
    backfilled: Backfilled, shops: Mapping[str, ScenarioShop]
) -> None:
    shop = shops["backfilled"]
    assert shop.is_whole()
    extra = Counter({key: number - 1 for key, number in shop.copies().items() if number > 1})
    assert extra == Counter(names(MISTAKES.sent_twice + MISTAKES.never_loaded))
    kept = shop.sql("select row ->> 'id' from makewhole.quarantine where source_table like %s", "%backfilled%")
    assert {key for (key,) in kept} == names(MISTAKES.loaded_twice)
    assert len(kept) == len(MISTAKES.loaded_twice)


# The form


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"pipeline": "nowhere"}, "'nowhere' is not one of"),
        ({"pipeline": "flights", "plan_only": "perhaps"}, "'perhaps' is not of type 'boolean'"),
    ],
)
def test_a_form_that_is_filled_in_wrongly_is_refused_with_the_reason(
    stage: Stage, form: dict[str, str], message: str
) -> None:
    stage.wait_for_dag("makewhole_oncall")
    answer = stage.ask(form)
    assert answer.status_code == 400
    assert message in answer.text


def test_a_form_without_a_pipeline_is_refused(stage: Stage) -> None:
    stage.wait_for_dag("makewhole_oncall")
    answer = stage.ask({})
    assert answer.status_code == 400
    assert "pipeline" in answer.text


@pytest.mark.parametrize(
    ("interval", "reason"),
    [
        ({"to": "soon"}, "'soon' is not a time; write it like 2026-01-31T02:00:00+00:00"),
        ({"to": utc(STARTED + DAY)}, "which is in the future; a window can only be judged after its end"),
        (
            {"from": utc(STARTED), "to": utc(STARTED - timedelta(hours=1))},
            "the end must be later than the start",
        ),
    ],
)
def test_an_interval_that_cannot_be_judged_is_red_at_once_and_says_why(
    stage: Stage, interval: dict[str, str], reason: str
) -> None:
    """Takes long: a run of Airflow, beside the crash points."""
    stage.wait_for_dag("makewhole_oncall")
    run = stage.begin("flights", **interval)

    tasks = stage.ended(run, "failed")

    assert tasks["open_window"] == "failed"
    assert {tasks[name] for name in WAY[1:-1]} == {"upstream_failed"}
    assert reason in stage.log(run, "open_window")
    assert "no window was opened in this run" in stage.log(run, "certify")
    assert stage.journal("select count(*) from makewhole.window where request = %s", run.id) == [(0,)]


# Something is not there


def test_a_missing_column_is_red_at_once_and_says_what_to_do(broken: Broken) -> None:
    assert broken.tasks["open_window"] == "failed"
    assert broken.tries == 1
    assert "broken.warehouse has no column amount. It has: at, elsewhere, id" in broken.log
    assert "no window was opened in this run; see the task `open_window`" in broken.certify_log
    assert broken.opened == 0
    assert broken.note.startswith("open_window failed: ")
    assert "broken.warehouse has no column amount" in broken.note


def test_when_the_column_is_there_the_cleared_run_goes_on_and_certifies(broken: Broken, wanted: frozenset[str]) -> None:
    # The on-call DAG publishes where any pipeline does, and this one does not.
    publishing = ("publish", "report_revoked") if "scheduled" in wanted else ()
    skipped = (*SKIPPED_WITHOUT_GAPS, *publishing)
    assert broken.mended_tasks == dict.fromkeys(WAY, "success") | dict.fromkeys(skipped, "skipped")
    assert (broken.mended["revision"], broken.mended["state"], broken.mended["reason"]) == (1, "certified", None)
    assert broken.mended_note == "window 1 (revision 1) of broken: certified; certificate 1"
