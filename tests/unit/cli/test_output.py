"""Test what commands print: JSON one object a line, and nothing that a terminal or rich would obey."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import Result

from makewhole.cli import certificate, explain, findings, report
from makewhole.cli.plan import answer, command
from makewhole.compensation.planning.deadlines import Deadlines
from makewhole.journal import certificates, plan_progress, plans
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.plan_progress import StoredAction
from makewhole.journal.plans import StoredPlan
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.retention import erasures
from makewhole.journey.copies import JourneyCopy
from makewhole.journey.trace import Journey, Stop
from makewhole.kafka.retention import Retention
from makewhole.model.acceptance import finding_id
from makewhole.model.actions import Action, BeforeRedeliver
from makewhole.model.plan import Plan, PlanState
from makewhole.model.points import PointKind
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Window, WindowState

pytestmark = pytest.mark.unit

NASTY = "K\x1b[2J\r\n[red]é\u202e\x9b1m"
SHOWN = "K\\x1b[2J\\r\\n[red]é\\u202e\\x9b1m"
AT = datetime(2013, 1, 2, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Result]) -> None:
    """A journal that only the patched readers below know."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://nowhere/x")
    monkeypatch.setenv("MAKEWHOLE_STORAGE", "/nowhere")
    for module in (certificate, report, findings, command, answer, explain):
        monkeypatch.setattr(module, "connect", lambda: nullcontext(object()))
    monkeypatch.setattr(findings, "connections_of", lambda _: {})
    monkeypatch.setattr(findings, "read_deadlines", lambda *_: Deadlines(retention={}, silent={}))


def window(number: int, **changed: Any) -> Window:
    settings: dict[str, Any] = {"state": WindowState.GAPS, "start": None, "end": AT, "reason": NASTY} | changed
    return Window(pipeline="flights", number=number, revision=1, opened_at=AT, ranges={}, **settings)


def finding() -> JudgedFinding:
    judged = Finding(
        hop="flights→warehouse",
        key=NASTY,
        key_hash="0" * 32,
        verdict=Verdict.MISSING,
        cause=Cause.LOST_AFTER_TOPIC,
        evidence={"values": {"note": NASTY}},
    )
    return JudgedFinding(finding=judged, outcome="open", reason=NASTY)


def document(number: int) -> dict[str, Any]:
    counts = vars(HopCounts(missing=2))
    return {
        "pipeline": "flights",
        "window": number,
        "revision": 1,
        "state": "gaps",
        "reason": NASTY,
        "from": None,
        "to": AT.isoformat(),
        "hops": [{"from": "a", "to": "b", "counts": counts, "after": None}],
        "handed_over": {"keys": 0, "since": None, "hops": []},
        "incidents": [],
        "accepted": {"findings": 0, "hops": [], "acceptances": [], "open_again": {}},
        "looked_at": {},
        "older_open": {"windows": 0, "findings": 0, "first_window": None, "since": None},
        "certificate": None,
    }


def original(key: str, offset: int, time: datetime) -> Finding:
    copy = {"place": f"0:{offset}", "partition": 0, "offset": offset, "time": time.isoformat()}
    return replace(finding().finding, key=key, evidence={"source": [copy]})


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.split("\n")[:-1]]


def _found(monkeypatch: pytest.MonkeyPatch, items: Sequence[JudgedFinding]) -> None:
    counted = Counter((item.finding.verdict.value, item.outcome) for item in items)
    monkeypatch.setattr(StoredFindings, "in_order", lambda *_: iter(items))
    monkeypatch.setattr(window_findings, "count_outcomes", lambda *_: counted)
    monkeypatch.setattr(hop_results, "results", lambda *_: {})
    monkeypatch.setattr(window_findings, "count_left_out", lambda *_: {})


def test_findings_are_one_object_a_line_whatever_the_key(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1), window(2)])
    _found(monkeypatch, [finding()])
    documents = objects(invoke("findings", "flights", "--json"))
    assert [item["window"] for item in documents] == [1, 2]
    assert documents[0] == {
        "window": 1,
        "revision": 1,
        "id": finding_id("flights→warehouse", finding().finding.key_hash),
        "hop": {"from": "flights", "to": "warehouse"},
        "key": NASTY,
        "verdict": "missing",
        "cause": "lost_after_topic",
        "outcome": "open",
        "reason": NASTY,
        "acceptance": None,
        "original": None,
        "evidence": {"values": {"note": NASTY}},
    }


def test_findings_for_people_do_not_steer_the_terminal(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1)])
    _found(monkeypatch, [finding()])
    result = invoke("findings", "flights")
    assert result.exit_code == 0
    assert is_harmless(result.stdout)
    assert SHOWN in result.stdout


def test_more_findings_than_the_limit_are_counted(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1)])
    _found(monkeypatch, [finding()] * 5)
    shown = invoke("findings", "flights", "--limit", "2").stdout
    assert shown.count(SHOWN.split("[")[0]) >= 2
    assert "and 3 more; --limit 5 or --json shows them all" in shown
    assert len(objects(invoke("findings", "flights", "--limit", "2", "--json"))) == 5


def test_findings_that_the_journal_did_not_take_are_counted_with_their_files(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1)])
    _found(monkeypatch, [finding()] * 2)
    files = {"findings": ["flights/window=1/a.parquet", "flights/window=1/b.parquet"]}
    result = HopResult(hop="outbox→flights", counts=HopCounts(), digest="0", files=files)
    monkeypatch.setattr(hop_results, "results", lambda *_: {"outbox→flights": result})
    left = {("a→b", Verdict.MISSING): 999_998, ("a→b", Verdict.PENDING): 3}
    monkeypatch.setattr(window_findings, "count_left_out", lambda *_: left)
    message = " ".join(invoke("findings", "flights", "--json").stderr.split())
    assert message.endswith(
        "2 of 1,000,003 findings are in the journal; all are in flights/window=1/a.parquet, "
        "flights/window=1/b.parquet, below the storage's root"
    )
    monkeypatch.setattr(window_findings, "count_left_out", lambda *_: {})
    assert invoke("findings", "flights", "--json").stderr == ""


def test_open_findings_come_first_by_the_time_until_kafka_deletes_their_original(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    kept = Retention(log_starts={0: 5}, keeps=timedelta(days=7), is_limited_in_size=False)
    ages = {"gone": (4, 0), "late": (9, 1), "soon": (8, 6.9), "due": (7, 8)}
    items = [
        JudgedFinding(finding=original(key, offset, now - timedelta(days=age)), outcome="open", reason=None)
        for key, (offset, age) in ages.items()
    ]
    repaired = replace(items[2], outcome="repaired", finding=replace(items[2].finding, key="whole"))
    monkeypatch.setattr(findings, "read_deadlines", lambda *_: Deadlines(retention={"flights": kept}, silent={}))
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1)])
    _found(monkeypatch, [repaired, *items])
    documents = objects(invoke("findings", "flights", "--json"))
    assert [item["key"] for item in documents] == ["due", "soon", "late", "gone", "whole"]
    assert documents[2]["original"] == {
        "fate": "expires",
        "at": (now + timedelta(days=6)).isoformat(),
        "may_be_earlier": False,
    }
    lines = [line.split() for line in invoke("findings", "flights").stdout.splitlines()]
    assert lines[0] == ["window", "hop", "verdict", "cause", "key", "id", "in", "Kafka", "outcome"]
    assert [" ".join(line[6:]) for line in lines[1:6]] == [
        "any moment open",
        "2 h left open",
        "6 days left open",
        "deleted open",
        "repaired",
    ]


def test_findings_are_shown_when_kafka_does_not_answer(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "read_deadlines", lambda *_: Deadlines(retention={}, silent={"flights": NASTY}))
    monkeypatch.setattr(findings, "chosen_windows", lambda *_, **__: [window(1)])
    _found(monkeypatch, [finding()])
    result = invoke("findings", "flights")
    assert (result.exit_code, result.stderr) == (0, f"not ranked by what Kafka deletes first: {SHOWN}\n")
    assert SHOWN in result.stdout


def test_windows_are_one_object_a_line(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "chosen_windows", lambda *_, **__: [window(1), window(2)])
    monkeypatch.setattr(report, "unopened_items", lambda *_: [])
    monkeypatch.setattr(report, "window_document", lambda _, judged_window: document(judged_window.number))
    assert objects(invoke("windows", "flights", "--json")) == [document(1), document(2)]
    shown = invoke("windows", "flights").stdout
    assert is_harmless(shown)
    assert "2 missing" in shown
    assert "the beginning" in shown


def test_the_newest_windows_are_listed_and_the_number_of_the_others_is_reported(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def chosen(*_: object, most: int | None, **__: object) -> list[Window]:
        asked.append(most)
        return [window(number) for number in range(1 if most is None else 1 + 7 - most, 8)]

    monkeypatch.setattr(report, "chosen_windows", chosen)
    monkeypatch.setattr(report, "window_document", lambda _, judged_window: document(judged_window.number))
    monkeypatch.setattr(report, "show_windows", lambda *_: None)
    monkeypatch.setattr(report, "unopened_items", lambda *_: [])
    message = "5 older windows not listed; `--last 0` lists all"
    assert message in invoke("windows", "flights", "--last", "2").stdout
    assert "not listed" not in invoke("windows", "flights", "--last", "0").stdout
    assert [printed["window"] for printed in objects(invoke("windows", "flights", "--last", "2", "--json"))] == [6, 7]
    assert asked == [2, None, 2]


def test_no_window_yet_says_how_to_open_one(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "chosen_windows", lambda *_, **__: [])
    monkeypatch.setattr(report, "unopened_items", lambda *_: [])
    assert invoke("windows", "flights").stdout == (
        "flights has no window yet; `makewhole run flights` opens the first\n"
    )
    assert objects(invoke("windows", "flights", "--json")) == []


def test_a_pipeline_that_is_not_known_is_wrong_usage(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makewhole.journal.windows.newest", lambda *_: [])
    monkeypatch.setattr("makewhole.journal.windows.count", lambda *_: 0)
    result = invoke("findings", "[/red]")
    assert result.exit_code == 2
    assert "[/red]: no good pipeline file has this name. Known are: flights." in result.stderr


def test_an_error_that_was_not_foreseen_is_shown_and_no_gap(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(report, "chosen_windows", fail)
    result = invoke("windows", "flights")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert result.stderr.endswith("ValueError: unforeseen\n")


def test_an_empty_chain_proves_nothing(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "chain", lambda *_: [])
    monkeypatch.setattr(certificates, "ends", lambda *_: [])
    monkeypatch.setattr("makewhole.journal.windows.pipelines", lambda *_: [])
    monkeypatch.setattr(erasures, "signed_erasures", lambda *_: [])
    monkeypatch.setattr(erasures, "unfinished_files", lambda *_: {})
    result = invoke("certificate", "verify", "flights")
    assert (result.exit_code, result.stdout) == (3, "flights: 0 certificates, nothing is proven yet\n")
    as_json = invoke("certificate", "verify", "flights", "--json")
    assert json.loads(as_json.stdout) == {
        "pipeline": "flights",
        "certificates": 0,
        "revocations": 0,
        "ok": True,
        "unchecked": [],
        "sound": True,
        "signed_from": None,
        "keys": [],
        "head": None,
        "accepted": 0,
        "handed_over": None,
        "problems": [],
        "uncertified": [],
        "erased": [],
    }


def stored_plan() -> StoredPlan:
    return StoredPlan(
        plan=Plan(
            id="flights-1-0123456789ab",
            pipeline="flights",
            window=1,
            revision=1,
            sha256="f" * 64,
            payload_uri=None,
            counts={"redeliver": 1},
            state=PlanState.DONE,
        ),
        payload_sha256=None,
    )


def test_a_plan_is_one_object_and_its_keys_do_not_steer_the_terminal(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    action = Action(
        seq=0,
        hop="flights→warehouse",
        target="flights",
        key=NASTY,
        key_hash="0" * 32,
        before=BeforeRedeliver(place="kafka:flights"),
    )
    stored = StoredAction(action=action, outcome="done", refusal=None)
    monkeypatch.setattr(plans, "find_plan", lambda *_: stored_plan())
    monkeypatch.setattr(plan_progress, "actions_of", lambda *_, **__: [stored])
    monkeypatch.setattr(plan_progress, "locking_chunks", lambda *_: {})
    monkeypatch.setattr(plan_progress, "missing_keys_by_store", lambda *_: {"warehouse": 1})
    monkeypatch.setattr(plans, "idle_plans", lambda *_: {})
    (shown,) = objects(invoke("plan", "show", "flights-1-0123456789ab", "--json"))
    assert (shown["state"], shown["actions"][0]["key"]) == ("done", NASTY)
    assert shown["risks"] == [
        "1 key was never seen in warehouse by a certified window; if erased on purpose, writing brings back what was "
        "deleted: then name 'erased:' of warehouse in the pipeline file first"
    ]
    text = invoke("plan", "show", "flights-1-0123456789ab").stdout
    assert is_harmless(text)
    assert SHOWN in text


def test_a_plan_that_waits_for_no_answer_refuses_one(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "find_plan", lambda *_: stored_plan())
    result = invoke("plan", "approve", "flights-1-0123456789ab")
    assert result.exit_code == 2
    assert result.stderr == "could not: plan flights-1-0123456789ab is done and waits for no answer\n"


def test_a_plan_that_is_not_there_is_wrong_usage(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "find_plan", lambda *_: None)
    result = invoke("plan", "show", "x\x1b[2J")
    assert result.exit_code == 2
    assert result.stderr == (
        "could not: there is no plan x\\x1b[2J; "
        "`makewhole windows PIPELINE --last 0 --json` names the plan of each window\n"
    )


def test_a_journey_does_not_steer_the_terminal_and_is_one_object(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = JourneyCopy(place="(0,1)", time=AT, values={"note": NASTY})
    stop = Stop(
        point="warehouse",
        kind=PointKind.STORE,
        system="table dw.departures",
        copies=(copy,),
        searched=("the table as it is now",),
        problems=(NASTY,),
    )
    journey = Journey(pipeline="flights", key=NASTY, key_hash="0" * 32, stops=(stop,), judgements=(), actions=())
    monkeypatch.setattr(explain, "find_pipeline", lambda _: None)
    monkeypatch.setattr(explain, "as_last_read", lambda _, pipeline: pipeline)
    monkeypatch.setattr(explain, "business_key", lambda _, key: key)
    monkeypatch.setattr(explain, "trace", lambda *_: journey)
    text = invoke("explain", "flights", "K").stdout
    assert is_harmless(text)
    assert f"note={SHOWN}" in text
    (shown,) = objects(invoke("explain", "flights", "K", "--json"))
    assert shown["points"][0]["copies"] == [{"place": "(0,1)", "time": AT.isoformat(), "values": {"note": NASTY}}]
