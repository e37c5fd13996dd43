"""Test what `makewhole todo` and `makewhole windows` say of what waits for a person, on a real journal."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.cli.runs import run
from makewhole.journal import certificates, plans, step_failures
from makewhole.journal.certificates import ChainEntry, EntryKind
from makewhole.journal.database import connect
from makewhole.journal.plans import Control
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import ConfigurationError, Problem, RefusedError, TransientError
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import PlanState
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.steps.recorded_failure import end_tries
from makewhole.window.readiness.mistakes import NotReadyError
from tests.integration.window.waiting_rows import DAG, NOW, URL, Command, failed, judged, opened, planned

pytestmark = pytest.mark.integration


def test_nothing_waits_in_an_empty_journal_and_of_certified_windows(journal: str, makewhole: Command) -> None:
    assert (makewhole("todo").stdout, makewhole("todo", "--json").stdout) == ("nothing waits for a person\n", "")
    with connect(journal) as session:
        opened(session, 1, WindowState.CERTIFIED)
        opened(session, 2, WindowState.OPEN)  # a run is at it
    result = makewhole("todo")
    assert (result.exit_code, result.stdout) == (0, "nothing waits for a person\n")


def test_everything_that_waits_is_listed_the_most_urgent_first_with_its_command(
    journal: str, makewhole: Command
) -> None:
    with connect(journal) as session:
        unknown = opened(session, 1, WindowState.NOT_KNOWN, reason="partial: 4 offsets were deleted")
        gaps = opened(session, 2, WindowState.GAPS, reason="3 keys missing")
        judged(session, gaps, HopCounts(source_keys=9, matched=6, missing=3))
        only_planned = opened(session, 3, WindowState.GAPS, plan_only=True, reason="2 keys missing")
        judged(session, only_planned, HopCounts(source_keys=2, missing=2))
        stopped = opened(session, 4, WindowState.GAPS, reason="1 key missing")
        judged(session, stopped, HopCounts(source_keys=1, missing=1))
        failed(session, "compensate", RefusedError("topic orders is gone"), stopped)
        paused = opened(session, 5, WindowState.OPEN)
        planned(session, paused, PlanState.RUNNING, "shop-5-paused")
        plans.set_control(session, "shop-5-paused", Control.PAUSE, "paused by anna")
        error = opened(session, 6, WindowState.ERROR, reason="snapshot did not end well")
        failed(session, "snapshot", RefusedError("table shop.orders has no column amount"), error)
        late, soon = opened(session, 7, WindowState.OPEN), opened(session, 8, WindowState.OPEN)
        planned(session, late, PlanState.AWAITING_APPROVAL, "shop-7-late")
        planned(session, soon, PlanState.AWAITING_APPROVAL, "shop-8-soon")
        plans.note_question(session, "shop-7-late", NOW + timedelta(hours=4))
        plans.note_question(session, "shop-8-soon", datetime.now(UTC) + timedelta(minutes=20, seconds=50))
        opened(session, 1, WindowState.CERTIFIED, pipeline="other")
        missing = Problem(file="connections", path="shop_db", found="is not there", remedy="Add it")
        failed(session, "open_window", ConfigurationError([missing]))
        assert unknown.number == 1

    lines = [json.loads(line) for line in makewhole("todo", "--json").stdout.splitlines()]

    assert [(line["kind"], line["window"], line["command"]) for line in lines] == [
        ("question", 8, "makewhole plan approve shop-8-soon"),
        ("question", 7, "makewhole plan approve shop-7-late"),
        ("not_opened", None, "makewhole run shop"),
        ("error", 6, "makewhole run shop --window 6"),
        ("repair_stopped", 4, "makewhole run shop --window 4"),
        ("repair_stopped", 5, "makewhole plan resume shop-5-paused"),
        ("gaps", 2, "makewhole findings shop --window 2"),
        ("gaps", 3, "makewhole run shop --window 3"),
        ("not_known", 1, "makewhole windows shop --window 1"),
    ]
    text = makewhole("todo").stdout.splitlines()
    assert text[0].startswith(
        "1. shop window 8 waits for an answer to plan shop-8-soon (3 actions), since 0 min, 20 min left"
    )
    assert text[4].startswith(
        "3. shop could open no window in run tonight, since 0 min: connections: shop_db: is not there"
    )
    assert text[5:7] == [f"   log:  {URL}/open_window", "   next: makewhole run shop"]
    assert text[7] == (
        "4. shop window 6 is in error: snapshot broke, since 3 d 22 h: table shop.orders has no column amount"
    )
    assert "6. shop window 5 has plan shop-5-paused (3 actions) paused" in "\n".join(text)
    assert "7. shop window 2 has 3 open findings, since 4 d 2 h: 3 keys missing" in text
    assert "8. shop window 3 has 2 open findings, and only a plan was asked for, since 4 d 1 h: 2 keys missing" in text


def test_an_older_revision_and_a_step_that_is_tried_again_wait_for_no_person(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        opened(session, 1, WindowState.GAPS)
        again = opened(session, 1, WindowState.OPEN, revision=2)
        failed(session, "snapshot", TransientError("shop_db does not answer; try again"), again)
        failed(session, "open_window", TransientError("Kafka does not answer; try again"))
        session.commit()
        assert makewhole("todo").stdout == "nothing waits for a person\n"
        failed(session, "snapshot", RefusedError("no column"), again)
        session.commit()
    assert "1. shop window 1 is in error: snapshot broke" in makewhole("todo").stdout


@pytest.mark.parametrize("is_open", [False, True])
def test_a_step_that_is_tried_in_vain_until_its_last_try_waits_until_it_ends_well(
    journal: str, makewhole: Command, is_open: bool
) -> None:
    with connect(journal) as session:
        window = opened(session, 1, WindowState.OPEN) if is_open else None
    step = "snapshot" if window else "open_window"
    what = "window 1 is in error: snapshot broke" if window else "could open no window in run {run}"
    number = 1 if window else 0

    def tries(run: str, text: str, *, is_last: bool = False) -> None:
        with connect(journal) as session:
            failed(session, step, TransientError(text), window, run=run)
        if is_last:
            pulled = {"pipeline": "shop", "window": 1, "revision": 1} if window else None
            ti = SimpleNamespace(task_id=step, dag_id=DAG, run_id=run, xcom_pull=lambda **_: pulled)
            end_tries({"ti": ti, "params": {}})

    tries("tonight", "Kafka does not answer")
    assert makewhole("todo").stdout == "nothing waits for a person\n"
    tries("tonight", "Kafka does not answer", is_last=True)
    assert f"1. shop {what.format(run='tonight')}" in makewhole("todo").stdout
    tries("tomorrow", "Kafka does not answer yet")
    first, *_ = makewhole("todo").stdout.splitlines()
    assert first.startswith(f"1. shop {what.format(run='tomorrow')}") and first.endswith(": Kafka does not answer yet")

    with connect(journal) as session:
        step_failures.forget(
            session, StepPlace(pipeline="shop", step=step, dag=DAG, run="tomorrow", number=number, revision=number)
        )
    assert makewhole("todo").stdout == "nothing waits for a person\n"


def test_the_last_try_of_another_run_ends_no_tries_of_this_one(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        failed(session, "open_window", TransientError("away"), run="tonight")
        step_failures.end_tries(session, StepPlace(pipeline="shop", step="open_window", dag=DAG, run="yesterday"))
    assert makewhole("todo").stdout == "nothing waits for a person\n"


def test_a_plan_whose_question_was_never_asked_and_an_undo_are_questions(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        window = opened(session, 1, WindowState.CERTIFIED)
        planned(session, window, PlanState.DONE, "shop-1-done")
        planned(session, window, PlanState.AWAITING_APPROVAL, "shop-1-undo", undoes="shop-1-done")
    [line] = [json.loads(line) for line in makewhole("todo", "--json").stdout.splitlines()]
    assert (line["until"], line["what"]) == (
        None,
        "waits for an answer to undo shop-1-undo of plan shop-1-done (3 actions)",
    )


def test_windows_name_the_plan_that_waits_the_one_that_failed_and_the_step_that_broke(
    journal: str, makewhole: Command
) -> None:
    until = datetime(2030, 5, 6, 7, 8, tzinfo=UTC)
    with connect(journal) as session:
        waits = opened(session, 1, WindowState.OPEN)
        planned(session, waits, PlanState.AWAITING_APPROVAL, "shop-1-plan")
        plans.note_question(session, "shop-1-plan", until)
        refused = opened(session, 2, WindowState.GAPS, reason="3 missing")
        planned(session, refused, PlanState.REFUSED, "shop-2-plan", reason="12,000 actions, 10,000 allowed")
        broken = opened(session, 3, WindowState.ERROR, reason="the comparison did not finish")
        failed(session, "reconcile", RefusedError("table shop.orders has no column amount"), broken)

        done = opened(session, 4, WindowState.GAPS, reason="1 duplicate")
        planned(session, done, PlanState.DONE, "shop-4-plan")
        whole = opened(session, 5, WindowState.CERTIFIED)
        planned(session, whole, PlanState.DONE, "shop-5-plan")

    said = makewhole("windows", "shop").stdout.splitlines()

    assert (
        "window 1: waits for approval of shop-1-plan until 2030-05-06 07:08 UTC: makewhole plan approve shop-1-plan, "
        "or reject"
    ) in said
    assert "window 2: plan shop-2-plan was refused: 12,000 actions, 10,000 allowed" in said
    assert (
        f"window 3: reconcile did not end well in run tonight of {DAG}: table shop.orders has no column amount"
    ) in said
    assert "window 4: plan shop-4-plan is done; why it left these gaps: makewhole findings shop --window 4" in said
    assert not any("shop-5-plan" in line for line in said)
    window_3 = [line for line in said if line.startswith("window 3: ")]
    assert window_3[-2:] == [
        "window 3: the comparison did not finish",
        f"window 3: the log of reconcile: {URL}/reconcile",
    ]
    document = json.loads(makewhole("windows", "shop", "--window", "3", "--json").stdout)
    [failure] = document["failed_steps"]
    assert {name: failure[name] for name in ("step", "run", "log")} == {
        "step": "reconcile",
        "run": "tonight",
        "log": f"{URL}/reconcile",
    }


def test_a_plan_that_no_task_ended_is_a_repair_that_stopped(journal: str, makewhole: Command) -> None:
    """As when the last try of its task is killed: no reason is left."""
    with connect(journal) as session:
        for number, state, plan_only in (
            (1, PlanState.RUNNING, False),
            (2, PlanState.DONE, False),
            (3, PlanState.APPROVED, True),
            (4, PlanState.REFUSED, False),
        ):
            gaps = opened(session, number, WindowState.GAPS, plan_only=plan_only, reason="1 key missing")
            judged(session, gaps, HopCounts(source_keys=1, missing=1))
            planned(session, gaps, state, f"shop-{number}-plan")

    items = [json.loads(line) for line in makewhole("todo", "--json").stdout.splitlines()]

    assert [(item["kind"], item["what"], item["command"]) for item in items] == [
        (
            "repair_stopped",
            "has 1 open finding, and its repair stopped: plan shop-1-plan was not ended",
            "makewhole run shop --window 1",
        ),
        ("refused", "had plan shop-4-plan (3 actions) refused", "makewhole plan show shop-4-plan"),
        ("gaps", "has 1 open finding", "makewhole findings shop --window 2"),
        ("gaps", "has 1 open finding, and only a plan was asked for", "makewhole run shop --window 3"),
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_the_mistakes_that_kept_a_window_from_being_opened_are_one_line(
    journal: str, makewhole: Command, count: int
) -> None:
    mistakes = [
        Problem(file="connections", path=name, found="is not there", remedy="Add it") for name in ("shop_db", "broker")
    ]
    with connect(journal) as session:
        opened(session, 1, WindowState.CERTIFIED)
        failed(session, "open_window", NotReadyError(mistakes[:count]))
    [line] = makewhole("todo", "--json").stdout.splitlines()
    things, more, them = (("1 thing", "", "it"), ("2 things", ", and 1 more", "them"))[count - 1]
    first, last = makewhole("windows", "shop", "--json").stdout.splitlines()
    assert (json.loads(first), json.loads(last)["window"]) == (json.loads(line), 1)
    shown = makewhole("windows", "shop").stdout.splitlines()
    assert [text.split(": ")[0] for text in shown[:3]] == [
        "shop could open no window in run tonight, since 0 min",
        "   log",
        "   next",
    ]
    assert shown[0].endswith(json.loads(line)["reason"])
    assert json.loads(line)["reason"] == (
        f"{things} to mend before a window can be judged: connections: shop_db: is not there{more}. Mend {them}, see "
        "that `makewhole check --live` finds no other, and run it again"
    )


def test_a_refused_request_waits_for_no_person_and_hides_no_pipeline_that_stands_still(
    journal: str, makewhole: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_pipeline", lambda name: Pipeline(name=name, points={}, hops=()))
    monkeypatch.setattr(run, "_start", lambda *_, **__: "noon")
    place = StepPlace(pipeline="shop", step="open_window", dag="makewhole_oncall", run="noon", is_request=True)
    with connect(journal) as session:
        step_failures.put(session, place, RefusedError("the interval ends in the future"))
        assert makewhole("todo", "--json").stdout == ""
        failed(session, "open_window", RefusedError("topic orders is gone"))
        step_failures.put(session, place, RefusedError("the interval ends in the future"))
    [line] = makewhole("todo", "--json").stdout.splitlines()
    assert json.loads(line)["reason"] == "topic orders is gone"
    refused = makewhole("run", "shop", "--to", "2100-01-01")
    assert (refused.exit_code, "opened no window:\nthe interval ends in" in refused.stderr) == (2, True)


def test_windows_name_the_certificate_that_was_revoked_until_another_one_stands(
    journal: str, makewhole: Command
) -> None:
    with connect(journal) as session:
        first = opened(session, 1, WindowState.CERTIFIED)
        certificates.insert(session, "shop", entry(first, 1))
        second = opened(session, 1, WindowState.GAPS, revision=2, reason="1 missing")
        because = {"because": {"revision": 2, "state": "gaps", "reason": "a late row"}}
        certificates.insert(session, "shop", entry(second, 2, revokes=1, body=because))

    said = makewhole("windows", "shop").stdout

    assert "window 1: its certificate 1 was revoked by number 2 of the chain at " in said
    assert "UTC: a late row\n" in said
    with connect(journal) as session:
        third = opened(session, 1, WindowState.CERTIFIED, revision=3)
        certificates.insert(session, "shop", entry(third, 3))
    assert "revoked" not in makewhole("windows", "shop").stdout


def entry(window: Window, ordinal: int, revokes: int | None = None, body: Any = None) -> ChainEntry:
    return ChainEntry(
        ordinal=ordinal,
        number=window.number,
        revision=1 if revokes else window.revision,
        digest="0",
        body=body or {},
        previous=None,
        sha256=str(ordinal),
        uri="",
        kind=EntryKind.REVOCATION if revokes else EntryKind.CERTIFICATE,
        revokes=revokes,
    )


def test_a_window_is_run_again_by_its_number_over_its_own_interval(
    journal: str, makewhole: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(run, "find_pipeline", lambda name: Pipeline(name=name, points={}, hops=()))

    def start(request: Any, _: Any, *, is_followed: bool) -> str:
        assert not is_followed
        asked.append(request.form())
        return "tonight"

    monkeypatch.setattr(run, "_start", start)
    with connect(journal) as session:
        opened(session, 7, WindowState.ERROR)
        window = opened(session, 8, WindowState.GAPS)

    result = makewhole("run", "shop", "--window", "8", "--no-follow", "--reason", "mended", "--plan-only")

    assert result.exit_code == 0, result.output
    assert asked == [
        {
            "pipeline": "shop",
            "from": None if window.start is None else window.start.isoformat(),
            "to": window.end.isoformat(),
            "plan_only": True,
            "read_again": False,
            "reason": "mended",
        }
    ]
    unknown = makewhole("run", "shop", "--window", "9", "--no-follow")
    assert (unknown.exit_code, "has no window 9" in unknown.stderr) == (2, True)
    twice = makewhole("run", "shop", "--window", "8", "--to", "2026-01-01")
    assert (twice.exit_code, len(asked)) == (2, 1)
