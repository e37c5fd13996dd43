"""Test how incidents and the accounting of offsets are shown to people and programs."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from typer.testing import Result

from makewhole.cli import documents, report
from makewhole.journal import acceptances, certificates, continuations, incidents, plans, step_failures, windows
from makewhole.journal.continuations import Continuation
from makewhole.journal.results import gate_answers, handover_keys, hop_results, snapshot_manifests
from makewhole.journal.results.handover_keys import Waiting
from makewhole.journal.windows import OlderOpen
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import Accounting, PartitionRange, Window, WindowState

pytestmark = pytest.mark.unit

AT = datetime(2013, 1, 2, 5, tzinfo=UTC)
GONE_ON_WITH = Continuation(
    run="continue__shop__5.1__2", asked_by="tonight try 1", began_at=datetime(2026, 3, 7, 2, tzinfo=UTC)
)
RANGE = PartitionRange(topic="orders", topic_id="id1", partition=3, lo=150, hi=300, lineage=1)
WINDOW = Window(
    pipeline="shop",
    number=5,
    revision=1,
    start=None,
    end=AT,
    opened_at=AT,
    ranges={"orders": (RANGE,)},
    state=WindowState.NOT_KNOWN,
    reason="partial: 4 offsets of orders/3 ([150, 154)) were deleted before they could be read. What they held is …",
)
EXPIRED = Incident(
    kind=IncidentKind.EXPIRED,
    point="orders",
    topic="orders",
    topic_id="id1",
    partition=3,
    lo=150,
    hi=154,
    detail={"before_it_was_read": True},
)
CHANGED = Incident(
    kind=IncidentKind.LEADER_CHANGED,
    point="orders",
    topic="orders",
    topic_id="id1",
    partition=3,
    lo=150,
    hi=300,
    detail={"epochs": [[2, 300]], "before": 0},
)
OLDER = OlderOpen(windows=2, findings=1_204, first_window=3, since=AT)
SINCE = datetime(2013, 1, 1, 2, 3, tzinfo=UTC)
ACCOUNTING = Accounting(span=150, data=140, control=6, expired=4)


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Result]) -> None:
    """A journal that holds one window."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://nowhere/x")
    monkeypatch.setenv("MAKEWHOLE_STORAGE", "/nowhere")
    monkeypatch.setattr(report, "connect", lambda: nullcontext(object()))
    monkeypatch.setattr(report, "chosen_windows", lambda *_, **__: [WINDOW])
    monkeypatch.setattr(report, "unopened_items", lambda *_: [])
    manifest = {"orders": {"accounting_by_partition": {"3": vars(ACCOUNTING)}}}
    for module, name, answer in (
        (hop_results, "results", {}),
        (gate_answers, "gate_reports", {}),
        (snapshot_manifests, "snapshots", manifest),
        (handover_keys, "waiting_by_hop", {"orders→warehouse": Waiting(keys=1_200, since=SINCE)}),
    ):
        monkeypatch.setattr(module, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(certificates, "of_revision", lambda *_: None)
    monkeypatch.setattr(certificates, "last_revocation", lambda *_: None)
    monkeypatch.setattr(step_failures, "of", lambda *_: [])
    for name, nothing in (("count_accepted", {}), ("standing_words", []), ("opened_again", {})):
        monkeypatch.setattr(acceptances, name, lambda *_, nothing=nothing: nothing)
    monkeypatch.setattr(windows, "older_open", lambda *_: OLDER)
    monkeypatch.setattr(incidents, "of", lambda *_: [CHANGED, EXPIRED])
    monkeypatch.setattr(plans, "frozen_plan", lambda *_: None)
    monkeypatch.setattr(continuations, "of", lambda *_: [GONE_ON_WITH] * 2)


def test_programs_get_incidents_and_accounts_as_they_are_stored() -> None:
    document = documents.window_document(None, WINDOW)  # type: ignore[arg-type]

    assert json.loads(json.dumps(document)) == document
    assert document["accounting"] == {
        "orders": [{"topic": "orders", "partition": 3, "lineage": 1, "lo": 150, "hi": 300, **vars(ACCOUNTING)}]
    }
    again = {"run": "continue__shop__5.1__2", "asked_by": "tonight try 1", "at": "2026-03-07T02:00:00+00:00"}
    assert document["continuations"] == [again, again]
    hops = [{"from": "orders", "to": "warehouse", "keys": 1_200, "since": SINCE.isoformat()}]
    assert document["handed_over"] == {"keys": 1_200, "since": SINCE.isoformat(), "hops": hops}
    assert document["older_open"] == {
        "windows": 2,
        "findings": 1_204,
        "first_window": 3,
        "since": AT.isoformat(),
    }
    first, second = document["incidents"]
    assert (first["kind"], first["message"]) == (
        "leader_changed",
        "the leader of orders/3 changed: leader epochs 0, 2",
    )
    assert (second["kind"], second["partition"], second["lo"], second["hi"]) == ("expired", 3, 150, 154)
    assert second["settled_by"].startswith("what they held is not known: a mirror or a backup of the topic can show it")


def test_people_see_each_thing_once(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = invoke("windows", "shop").output

    assert "window 5: the leader of orders/3 changed: leader epochs 0, 2" in said
    assert (
        "window 5: 1,200 keys are in flight and handed over to the next window; the first waits since 2013-01-01 02:03 "
        "UTC"
    ) in said
    assert "2 older windows are open, since 2013-01-02 05:00 UTC (window 3): 1,204 findings" in said
    assert said.count("were deleted before they could be read") == 1
    assert "span" not in said
    assert "window 5: was gone on with 2 times, last by run continue__shop__5.1__2 at 2026-03-07 02:00" in said


def test_of_one_window_people_are_shown_what_every_offset_was(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = invoke("windows", "shop", "--window", "5").output

    heading, line = [" ".join(line.split()) for line in said.splitlines()][-2:]
    assert heading == "topic offsets span data control aborted compacted expired undecodable"
    assert line == "orders orders/3 lineage 1 [150, 300) 150 140 6 0 0 4 0"


def test_tombstones_that_erase_have_a_column_where_there_are_any(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    accounting = Accounting(span=150, data=140, control=6, expired=1, erasures=3).to_json_dict()
    manifest = {"orders": {"accounting_by_partition": {"3": accounting}}}
    monkeypatch.setattr(snapshot_manifests, "snapshots", lambda *_: manifest)
    said = invoke("windows", "shop", "--window", "5").output

    heading, line = [" ".join(line.split()) for line in said.splitlines()][-2:]
    assert heading == "topic offsets span data control aborted compacted expired undecodable erasures"
    assert line == "orders orders/3 lineage 1 [150, 300) 150 140 6 0 0 1 0 3"


@pytest.mark.parametrize("width", [10, 40, 60, 80])
def test_no_column_is_left_out_however_narrow_the_terminal_is(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = invoke("windows", "shop", "--window", "5").output
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = invoke("windows", "shop", "--window", "5").output

    assert sorted("".join(narrow.split())) == sorted("".join(wide.split()))
