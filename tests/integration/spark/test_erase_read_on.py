"""Test that what an erasure leaves can still be read, judged and accepted."""

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole_spark.publish.publish_window import publish_windows
from tests.integration.spark.test_erase import erased, places_of, request_of, verified
from tests.world.acceptances import accepted, opened_again
from tests.world.accepted_windows import OBSERVE
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_what_is_left_of_a_plan_and_of_findings_can_still_be_read_and_judged(shop: ReconciledShop) -> None:
    """A key that is open, one that was moved aside, and one in flight: nothing looks for any of them later."""
    shop.describe(compensation={"missing": "report", "duplicate": "quarantine", "limits": "{share: 1.0}"})
    made = orders(range(900_101, 900_109))
    shop.trade(made, unloaded=made[:2])
    shop.write("warehouse", [made[3]])
    context = shop.judge_and_ask_the_gate(0)
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    assert shop.certify(context).state is WindowState.GAPS
    erased(shop, made[0]["id"])
    assert erased(shop, made[3]["id"]).rows_at_targets == 2
    assert shop.sql("select count(*) from makewhole.quarantine") == [(0,)]

    shown = CliRunner().invoke(app, ["plan", "show", plan.id, "--json"])
    assert (shown.exit_code, made[3]["id"] in shown.output, "(removed)" in shown.output) == (0, False, True)
    listed = CliRunner().invoke(app, ["findings", "shop", "--window", "1", "--json"])
    assert (listed.exit_code, made[0]["id"] in listed.output, made[1]["id"] in listed.output) == (0, False, True)
    traced = CliRunner().invoke(app, ["explain", "shop", made[3]["id"], "--json"])
    assert traced.exit_code in (0, 1, 3)
    verify_window(context, lambda *_: None)
    outcomes = shop.journal_sql(
        "select key, verdict, outcome from makewhole.finding where number = 1 and hop = %s order by 1, 2", STORE_HOP
    )
    assert outcomes == [
        ("(removed)", "duplicate", "repaired"),
        ("(removed)", "missing", "erased"),
        (made[1]["id"], "missing", "open"),
    ]
    again, closed = shop.whole_way(0)
    assert (again.window.revision, closed.state) == (2, WindowState.GAPS)
    assert shop.found(again, STORE_HOP)[made[0]["id"]] == ("erased", "erased_on_purpose")
    assert verified(shop) == []


def test_an_accepted_finding_stays_accepted_when_its_key_is_erased(shop: ReconciledShop) -> None:
    shop.describe(compensation=OBSERVE)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:1])
    _, closed = shop.whole_way(0)
    assert closed.state is WindowState.GAPS
    _, certified = accepted(shop, made[0]["id"])
    assert certified.state is WindowState.CERTIFIED

    erased(shop, made[0]["id"])

    assert opened_again(shop) == []
    rows = shop.journal_sql("select stands, key, fingerprint, held from makewhole.accepted_finding")
    assert rows == [(True, "(removed)", "", "{}")]
    assert shop.journal_sql("select count(*) from makewhole.acceptance where seen::text like %s", "%O900101%") == [(0,)]
    assert verified(shop) == []


def test_an_erased_key_is_not_kept_among_those_that_are_not_published(shop: ReconciledShop) -> None:
    shop.format = {"publish": f"{{path: {shop.folder / 'once'}}}"}
    shop.describe(is_observing=True, has_ledger=False, tolerance={"conflict": "9"})
    made = orders(range(900_101, 900_104))
    shop.send([*made, {**made[0], "amount": "77.00"}, {**made[1], "amount": "78.00"}])
    shop.write("warehouse", made)
    context, _ = shop.whole_way()
    with connect(shop.journal) as journal:
        [published] = publish_windows(shop.carrier, journal, context)
    assert published.windows[0].manifest["left_out"] == {"conflict": 2}

    erased(shop, "O900101")

    key = request_of(shop, "O900101").erased
    assert places_of(shop, key.text, key.hash) == []
    assert any("left_out" in place for place in places_of(shop, "O900102", request_of(shop, "O900102").erased.hash))
