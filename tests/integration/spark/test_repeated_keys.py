"""Test that keys with several records are reported in a topic that nothing feeds, and change nothing else."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import BORN, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def describe(shop: ReconciledShop, duplicates: str | None = "report", **more: Any) -> None:
    shop.format = {} if duplicates is None else {"duplicates": duplicates}
    shop.describe(has_ledger=False, **{"is_observing": True, "start": BORN.isoformat(), "reach": "log", **more})


def repeated(shop: ReconciledShop, context: WindowContext) -> dict[str, Any]:
    """Return what the window says of its topic; nothing where it does not say it."""
    with connect(shop.journal) as journal:
        own = [
            incident
            for incident in incidents.of(journal, context.window)
            if incident.kind is IncidentKind.REPEATED_KEYS
        ]
    return {**own[0].detail, "sentence": incident_sentence(own[0])} if own else {}


def test_keys_with_several_records_are_reported_by_what_they_are_and_no_verdict_changes(shop: ReconciledShop) -> None:
    describe(shop)
    made = orders(range(12))
    aborted = shop.begin_transaction([made[7]])
    shop.end_transaction(aborted, is_committed=False)
    shop.send([*made, made[3], made[3], made[5] | {"amount": "99.99"}])
    shop.write("warehouse", made)

    context, closed = shop.whole_way()

    repeats = repeated(shop, context)
    assert {name: repeats[name] for name in ("keys", "resend", "conflict", "unknown", "records")} == {
        "keys": 2,
        "resend": 1,
        "conflict": 1,
        "unknown": 0,
        "records": 3,
    }
    assert [(key["key"], key["repeat"], len(key["places"]), key["before"]) for key in repeats["first"]] == [
        ("O3", "resend", 3, []),
        ("O5", "conflict", 2, []),
    ]
    assert repeats["sentence"].startswith(
        f"2 keys of {shop.topic} have several records each: 1 sent again with the same values, 1 with other values (at "
    )
    stored = context.storage.read_parquet(repeats["files"], ["key", "repeat"])
    assert stored is not None
    assert sorted(stored.rows()) == [("O3", "resend"), ("O5", "conflict")]
    verdicts = shop.found(context, STORE_HOP)
    assert closed.state is WindowState.GAPS

    describe(shop, None)
    again, closed_again = shop.whole_way()
    assert repeated(shop, again) == {}
    assert (shop.found(again, STORE_HOP), closed_again.state) == (verdicts, closed.state)
    assert shop.counts(again, STORE_HOP) == shop.counts(context, STORE_HOP)


def test_a_record_of_a_key_that_a_window_before_had_is_a_second_one(shop: ReconciledShop) -> None:
    describe(shop)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made)
    first, closed = shop.whole_way(0)
    assert (repeated(shop, first)["keys"], closed.state) == (0, WindowState.CERTIFIED)
    assert repeated(shop, first)["sentence"] == f"no key of {shop.topic} has a second record"

    later = orders(range(6, 10), day=1)
    shop.send([*later, made[2], made[4] | {"amount": "99.99"}])
    shop.write("warehouse", later)
    second = shop.judged(1)

    repeats = repeated(shop, second)
    assert [(key["key"], key["repeat"], len(key["places"]), len(key["before"])) for key in repeats["first"]] == [
        ("O2", "resend", 1, 1),
        ("O4", "conflict", 1, 1),
    ]
    assert (repeats["keys"], repeats["records"]) == (2, 2)


def test_where_the_file_refuses_them_the_window_has_gaps_until_it_does_not(shop: ReconciledShop) -> None:
    describe(shop, "refused")
    made = orders(range(5))
    shop.send([*made, made[1]])
    shop.write("warehouse", made)

    context, closed = shop.whole_way()

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.GAPS)
    assert f"1 key of {shop.topic} has several records: 1 sent again with the same values" in str(closed.reason)
    assert "O1" not in str(closed.reason)

    describe(shop, "report")
    again, closed = shop.whole_way()
    assert (closed.state, repeated(shop, again)["keys"]) == (WindowState.CERTIFIED, 1)
    assert closed.certificate is not None
    text = json.dumps(closed.certificate.body)
    assert '"repeated_keys"' in text
    assert '"O1"' not in text
    shown = CliRunner().invoke(app, ["windows", "shop", "--window", "1"], env={"COLUMNS": "400"})
    assert "1 key of" in shown.output
    assert f"O1 of {shop.topic}: sent again with the same values, at " in shown.output


def test_a_topic_without_records_is_counted_too(shop: ReconciledShop) -> None:
    describe(shop, allow_empty=True)
    context, closed = shop.whole_way()
    assert (repeated(shop, context)["keys"], closed.state) == (0, WindowState.CERTIFIED)


def test_what_compensation_sends_again_is_no_second_record(shop: ReconciledShop) -> None:
    describe(shop, is_observing=False, hop={"compensation": "{missing: redeliver}"})
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:4])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    shop.write("warehouse", made[4:])
    verify_window(context, lambda *_: None, patience_seconds=0)
    shop.certify(context)

    later = shop.judged(1)

    assert repeated(shop, later)["keys"] == 0
