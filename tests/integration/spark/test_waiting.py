"""Test that waiting ends: what is handed over becomes a loss, and a consumer that stands or is absent is reported."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.plan_window import plan_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers
from makewhole.model.gate import GateAnswer
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.orchestration.steps.watermark import certified_extra
from makewhole.window.context import WindowContext
from makewhole.window.opening import observe
from tests.world.orders import DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found, ReconciledShop

pytestmark = pytest.mark.integration

HOUR = timedelta(hours=1)
LOST = ("missing", "not_consumed")
PASSED = ("missing", "committed_before_written")
WAITING = ("pending", "not_yet_consumed")


def all_of(waiting: Sequence[Order], verdict: tuple[str, str]) -> Found:
    return {order["id"]: verdict for order in waiting}


def happened(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return incidents.of(journal, context.window)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_partition_that_stands_is_reported_and_after_a_day_what_is_behind_it_is_lost(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made, later, last = orders(range(10)), orders(range(100, 105), 1), orders(range(200, 205), 2)
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)
    first, closed = shop.whole_way()
    assert (shop.found(first, STORE_HOP), closed.state) == (all_of(made[6:], WAITING), WindowState.CERTIFIED)
    assert (closed.handed_over, happened(shop, first)) == (4, [])

    shop.let_pass(HOUR * 13)
    shop.trade(later, unloaded=later[2:])
    second, closed = shop.whole_way(1)
    (stalled,) = happened(shop, second)
    assert (stalled.kind, stalled.partition, stalled.lo) == (IncidentKind.CONSUMER_STALLED, 0, 6)
    assert stalled.detail == {"group": "loader", "committed": 6, "records": 9}
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 7)
    assert closed.certificate is not None
    assert closed.certificate.body["handed_over"]["keys"] == 7
    assert closed.certificate.body["how"]["waiting"][STORE_HOP]["keys"] == 7
    assert certified_extra("shop", closed.certificate)["handed_over"] == 7
    first_line, second_line, *messages = run("windows", "shop").splitlines()[1:]
    assert [line.split()[-2] for line in (first_line, second_line)] == ["4", "7"]
    since = closed.certificate.body["how"]["waiting"][STORE_HOP]["since"][:16].replace("T", " ")
    assert (
        f"window 2: 7 keys are in flight and handed over to the next window; the first waits since {since} UTC"
        in messages
    )
    verified = json.loads(run("certificate", "verify", "shop", "--json"))
    assert verified["handed_over"] == {"window": 2, "keys": 7}
    assert run("certificate", "verify", "shop").splitlines()[1:] == [
        "window 2: 7 keys are in flight and handed over to the next window; not proven"
    ]
    last_shown = [json.loads(line)["handed_over"] for line in run("windows", "shop", "--json").splitlines()][-1]
    assert (last_shown["keys"], [hop["keys"] for hop in last_shown["hops"]]) == (7, [7])

    shop.let_pass(HOUR * 13)
    shop.trade(last, unloaded=last)
    third, closed = shop.whole_way(2)
    # Those of the second window have waited for 13 hours only.
    assert shop.found(third, STORE_HOP) == all_of(made[6:], LOST) | all_of([*later[2:], *last], WAITING)
    assert closed.state is WindowState.GAPS
    evidence = shop.evidence(third, STORE_HOP, "O6")
    assert (evidence["group"], evidence["group_committed"]) == ("loader", {"0": 6})
    assert evidence["waiting_since"] < third.window.opened_at.isoformat()

    frozen = plan_window(third)
    assert frozen.plan is None
    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.OTHER,
            "its record still stands in front of group loader, which would load it a second time when it goes on; mend "
            "the consumer, then run this window again",
        )
    ] * 4

    shop.write("warehouse", [*made[6:], *later[2:], *last])
    shop.commit_group("loader", 20)
    again, closed = shop.whole_way(2)
    assert (shop.found(again, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    (grown,) = happened(shop, again)  # the rows of the first day came after it was counted
    assert (grown.kind, grown.detail["rows"]) == (IncidentKind.SLICE_GROWN, 4)


def test_a_group_that_does_not_exist_is_no_proof_and_ends_in_a_loss(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader-mistyped"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[6:])

    first, closed = shop.whole_way()
    assert shop.found(first, STORE_HOP) == all_of(made[6:], WAITING)
    (unknown,) = happened(shop, first)
    assert (unknown.kind, unknown.partition, unknown.lo, unknown.hi) == (IncidentKind.GROUP_UNKNOWN, 0, 0, 10)
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None
    assert closed.reason.startswith("not proven: group `loader-mistyped` has committed no offset in ")

    shop.let_pass(DAY * 1.01)
    again, closed = shop.whole_way()  # a window that is judged again is no younger
    assert shop.found(again, STORE_HOP) == all_of(made[6:], LOST)
    assert shop.evidence(again, STORE_HOP, "O6")["group_committed"] == {"0": None}
    assert closed.state is WindowState.NOT_KNOWN
    assert str(closed.reason).endswith("Certain all the same: orders→warehouse: 4 missing")


@pytest.mark.parametrize(
    ("offset", "where"),
    [(99, "behind the end of"), pytest.param(2, "before the beginning of", marks=pytest.mark.extended)],
)
def test_an_offset_that_the_log_does_not_have_proves_nothing(shop: ReconciledShop, offset: int, where: str) -> None:
    """As after a restore from another cluster, or when the log expired before the consumer. Nothing is sent again."""
    shop.describe(hop={"consumer_group": "loader"}, max_age="1h")
    made = orders(range(10))
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", offset)
    shop.delete_records({0: 4})
    context, closed = shop.whole_way()
    assert closed.state is WindowState.NOT_KNOWN
    assert where in (closed.reason or "")
    assert shop.found(context, STORE_HOP) == all_of(made[6:], WAITING)
    (happening,) = [
        incident for incident in happened(shop, context) if incident.kind is not IncidentKind.BEGINNING_GONE
    ]
    assert (happening.kind, happening.lo) == (IncidentKind.GROUP_OUT_OF_RANGE, 4)
    assert happening.detail == {"group": "loader", "committed": offset, "records": 6, "log": [4, 10]}

    shop.commit_group("loader", 6)
    shop.let_pass(HOUR)
    again, closed = shop.whole_way()
    assert shop.found(again, STORE_HOP) == all_of(made[6:], LOST)
    assert closed.state is WindowState.GAPS


def test_a_group_that_stands_where_it_stood_before_its_log_was_cut_off_has_one_window_to_go_back(
    shop: ReconciledShop,
) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made, later, last = orders(range(10)), orders(range(100, 110), 1), orders(range(200, 205), 2)
    shop.trade(made)
    first = shop.open()
    shop.trade(later, unloaded=[later[1], later[5]])
    shop.commit_group("loader", 20)
    shop.judge(first)
    shop.validate(first)
    shop.certify(first)
    second = shop.open(1)
    cut = Incident(
        kind=IncidentKind.TRUNCATED,
        point="orders",
        topic=shop.topic,
        topic_id=second.window.ranges["orders"][0].topic_id,
        partition=0,
        lo=14,
        hi=20,
        detail={"before_it_was_read": False, "lineage": 0},
    )
    with connect(shop.journal) as journal:
        incidents.put(journal, second.window, [cut])
    shop.judge(second)
    assert shop.found(second, STORE_HOP) == {"O101": PASSED, "O105": WAITING}
    assert [incident.kind for incident in happened(shop, second)] == [IncidentKind.TRUNCATED]
    shop.validate(second)
    shop.certify(second)

    shop.let_pass(HOUR)
    shop.trade(last)
    third, _ = shop.whole_way(2)
    assert shop.found(third, STORE_HOP) == {"O105": PASSED}


def test_a_group_whose_offsets_expired_is_noticed_though_nothing_new_came(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"}, allow_empty=True)
    made = orders(range(10))
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)
    shop.whole_way()

    shop.delete_group("loader")
    shop.let_pass(DAY * 1.01)
    second, closed = shop.whole_way(1)
    assert shop.found(second, STORE_HOP) == all_of(made[6:], LOST)
    assert [incident.kind for incident in happened(shop, second)] == [IncidentKind.GROUP_UNKNOWN]
    assert closed.state is WindowState.NOT_KNOWN

    third, closed = shop.whole_way(2)
    (unknown,) = happened(shop, third)
    assert (unknown.kind, unknown.lo, unknown.detail["records"]) == (IncidentKind.GROUP_UNKNOWN, 6, 0)
    assert closed.state is WindowState.NOT_KNOWN

    shop.delete_records({0: 10})
    fourth, closed = shop.whole_way(3)
    assert happened(shop, fourth) == []


def test_a_transaction_that_stays_open_ends_in_a_loss_that_is_not_sent_again(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    transaction = shop.begin_transaction(made[8:], seconds=600)
    first, closed = shop.whole_way()
    assert (shop.found(first, LEDGER_HOP), closed.handed_over) == (all_of(made[8:], ("pending", "in_flight")), 2)

    shop.let_pass(DAY * 1.01)
    again, closed = shop.whole_way()

    assert shop.found(again, LEDGER_HOP) == all_of(made[8:], ("missing", "not_committed"))
    assert closed.state is WindowState.GAPS
    assert shop.evidence(again, LEDGER_HOP, "O8")["open"] == ["0:8"]
    assert [refused.refusal for refused in plan_window(again).refusals] == [
        Refusal(
            RefusalCode.OTHER,
            f"its record is in or behind an open transaction (0:{at}) and may yet be committed; end the transaction, "
            "then run this window again",
        )
        for at in (8, 9)
    ]
    shop.end_transaction(transaction, is_committed=True)


def test_a_row_of_the_ledger_counts_a_settle_time_after_it_could_be_seen_whatever_its_time_says(
    shop: ReconciledShop,
) -> None:
    """It can be committed long after its own time, and its record is sent after that."""
    shop.describe(settle="1h", max_age="1d")
    made = orders(range(10))
    shop.trade(made[:9], unsent=made[8:])
    young, lost = ("pending", "in_flight"), ("missing", "never_produced")
    assert shop.found(shop.judged(), LEDGER_HOP) == {"O8": young}

    shop.let_pass(timedelta(hours=1.1))
    shop.write("outbox", made[9:])
    assert shop.found(shop.judged(), LEDGER_HOP) == {"O8": lost, "O9": young}

    shop.let_pass(timedelta(hours=1.1))
    assert shop.found(shop.judged(), LEDGER_HOP) == {"O8": lost, "O9": lost}


def test_a_worker_whose_clock_is_behind_shortens_no_settle_time(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker opens a window, another one judges it: both have the journal's clock."""

    class ClockBehind(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) - 2 * HOUR

    shop.describe(settle="1h", max_age="1d")
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    monkeypatch.setattr(observe, "datetime", ClockBehind, raising=False)
    assert shop.found(shop.judged(), LEDGER_HOP) == all_of(made[8:], ("pending", "in_flight"))


def test_a_settle_time_longer_than_max_age_is_waited_for(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"}, settle="2d", max_age="1h", allow_empty=True)
    made = orders(range(10))
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)
    young = all_of(made[6:], WAITING)
    assert shop.found(shop.judged(), STORE_HOP) == young
    shop.let_pass(DAY)
    assert shop.found(shop.judged(), STORE_HOP) == young
    shop.let_pass(DAY * 1.01)
    assert shop.found(shop.judged(), STORE_HOP) == all_of(made[6:], LOST)


def test_the_gate_allows_no_more_keys_in_flight_than_the_file_says(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"}, tolerance={"pending": "3"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)

    first, closed = shop.whole_way()

    assert (closed.state, closed.reason) == (
        WindowState.NOT_KNOWN,
        f"not proven: {STORE_HOP}: 4 keys pending, 3 allowed",
    )
    with connect(shop.journal) as journal:
        assert gate_answers.gate_reports(journal, first.window)["reconciled"].answer is GateAnswer.FAIL

    shop.write("warehouse", made[6:7])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
