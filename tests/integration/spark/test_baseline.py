"""Test the baseline: what only one side of a hop has from before the other reaches back is no gap, and is counted."""

import json
from datetime import timedelta

import pytest
from confluent_kafka.admin import NewPartitions
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.plan_window import plan_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, connections_of
from makewhole.window.opening.open import Request, open_interval
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

WIDE = {"COLUMNS": "400"}
PRODUCE = {"compensation": "{missing: produce}"}
OLDER = ("undecidable", "older_than_log")
NOON = BORN + timedelta(hours=12)


def at(order: Order, minutes: int) -> Order:
    """Return the order with its time so many minutes after noon."""
    return {**order, "at": (NOON + timedelta(minutes=minutes)).isoformat()}


def kinds(shop: ReconciledShop, context: WindowContext) -> dict[IncidentKind, str]:
    """Return the points of the window's incidents, by kind."""
    with connect(shop.journal) as journal:
        return {incident.kind: incident.point for incident in incidents.of(journal, context.window)}


def trade_and_forget(shop: ReconciledShop, numbers: range) -> list[Order]:
    """Take orders all the way, and have Kafka forget their records."""
    old = orders(numbers)
    shop.trade(old)
    shop.delete_records({0: len(old)})
    return old


@pytest.mark.parametrize("is_upsert", [False, True], ids=["event", "upsert"])
def test_what_is_older_than_a_log_that_lost_its_beginning_is_no_gap(shop: ReconciledShop, is_upsert: bool) -> None:
    everything = {"limits": "{share: 1.0}", "missing": "upsert", "unexpected": "quarantine"}
    shop.describe(is_upsert=is_upsert, start=None, compensation=everything, ledger_hop={} if is_upsert else PRODUCE)
    trade_and_forget(shop, range(40))
    new = orders(range(100, 110))
    shop.trade(new, unsent=new[4:5])
    shop.write("warehouse", orders([150]))

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O104": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O150": ("unexpected", "not_in_source")}
    assert [shop.counts(context, hop).before_baseline for hop in (LEDGER_HOP, STORE_HOP)] == [40, 40]
    assert kinds(shop, context) == {IncidentKind.BEGINNING_GONE: "orders"}
    assert closed.state is WindowState.GAPS
    frozen = plan_window(context)
    assert [(action.remedy, action.key) for action in frozen.actions] == [
        *([] if is_upsert else [(Remedy.PRODUCE, "O104")]),
        (Remedy.QUARANTINE, "O150"),
    ]
    assert frozen.refusals == ()


def test_a_window_with_older_keys_is_certified_and_says_how_many(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    trade_and_forget(shop, range(40))
    shop.trade(orders(range(100, 110)))

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED
    assert closed.certificate is not None
    counts = shop.counts(context, LEDGER_HOP)
    assert (counts.matched, counts.before_baseline, counts.source_keys) == (10, 40, 50)
    listed, document = (CliRunner().invoke(app, ["windows", "shop", *more], env=WIDE) for more in ([], ["--json"]))
    assert "80 before_baseline" in listed.stdout
    shown = {(hop["from"], hop["to"]): hop["counts"] for hop in json.loads(document.stdout)["hops"]}
    assert {ends: (counts["matched"], counts["before_baseline"]) for ends, counts in shown.items()} == {
        ("outbox", "orders"): (10, 40),
        ("orders", "warehouse"): (10, 40),
    }


def test_the_day_after_is_judged_whole(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    trade_and_forget(shop, range(40))
    shop.trade(orders(range(100, 110)))
    shop.whole_way()
    later = orders(range(200, 210), 1)
    shop.trade(later, unsent=later[:1])

    context, closed = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O200": ("missing", "never_produced")}
    assert closed.state is WindowState.GAPS


def test_a_new_revision_keeps_the_baseline_of_the_first_one(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    trade_and_forget(shop, range(40))
    shop.trade(orders(range(100, 110)))
    shop.whole_way()

    again, closed = shop.whole_way()

    assert again.window.revision == 2
    assert shop.counts(again, LEDGER_HOP).before_baseline == 40
    assert closed.state is WindowState.CERTIFIED


def test_a_partition_without_any_record_left_reaches_back_to_now(shop: ReconciledShop) -> None:
    admin = shop.admin
    admin.create_partitions([NewPartitions(shop.topic, 2)])[shop.topic].result(30)
    shop.partitions = 2
    shop.describe(start=None)
    shop.trade(orders(range(0, 40, 2)))
    shop.trade(orders(range(1, 41, 2)))
    shop.delete_records({1: 20})
    shop.write("outbox", orders([44]))

    context, _ = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {}
    # Its record may have been in the partition that has nothing left.
    assert shop.counts(context, LEDGER_HOP).before_baseline == 21


def test_older_keys_beside_a_log_that_begins_at_0_are_a_question_for_a_person(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    older, new = orders(range(5)), orders(range(100, 110))
    shop.write("outbox", older)
    shop.write("warehouse", older)
    shop.trade(new, unsent=new[4:5])

    context, closed = shop.whole_way()

    undecided = {f"O{number}": OLDER for number in range(5)}
    assert shop.found(context, LEDGER_HOP) == undecided | {"O104": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == undecided
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None
    assert "on outbox→orders, orders→warehouse 10 keys are older" in closed.reason
    assert "`start: 2025-03-01T01:40:00+00:00`" in closed.reason


@pytest.mark.parametrize(
    ("start", "state", "before"),
    [("2025-03-01T01:00:00Z", WindowState.CERTIFIED, 5), ("earliest", WindowState.GAPS, 0)],
    ids=["from before the topic", "lost"],
)
def test_a_person_answers_by_the_start(shop: ReconciledShop, start: str, state: WindowState, before: int) -> None:
    shop.describe(start=None)
    shop.write("outbox", orders(range(5)))
    shop.trade(orders(range(100, 110)))
    assert shop.whole_way()[1].state is WindowState.NOT_KNOWN

    shop.describe(start=start)
    context, closed = shop.whole_way()

    assert shop.counts(context, LEDGER_HOP).before_baseline == before
    assert shop.counts(context, LEDGER_HOP).missing == 5 - before
    assert closed.state is state
    assert kinds(shop, context) == {}


def test_keys_on_both_sides_of_the_cut_are_looked_for_on_the_far_side(shop: ReconciledShop) -> None:
    shop.describe(start=NOON.isoformat())
    skewed, late, lost, stray, plain = orders(range(5))
    # Sent in this order: the first record since noon is where the window cuts into the log.
    shop.send([at(skewed, -1), at(late, 1), at(plain, 5)])
    shop.write("outbox", [at(skewed, 1), at(late, -1), at(lost, 3), at(plain, 5)])
    shop.write("warehouse", [at(skewed, 2), at(late, 2), at(stray, 4), at(plain, 6)])

    context, _ = shop.whole_way()

    assert context.window.ranges["orders"][0].lo == 1
    assert shop.found(context, LEDGER_HOP) == {"O2": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O3": ("unexpected", "not_in_source")}


def test_what_lies_before_the_start_is_not_judged(shop: ReconciledShop) -> None:
    shop.describe(start=NOON.isoformat())
    old = [at(order, -60) for order in orders(range(5))]
    shop.trade(old, unsent=old[:2], unloaded=old[3:])
    new = [at(order, 60) for order in orders(range(10, 15))]
    shop.trade(new)

    context, closed = shop.whole_way()

    assert (shop.found(context, LEDGER_HOP), shop.found(context, STORE_HOP)) == ({}, {})
    assert closed.state is WindowState.CERTIFIED


def test_latest_needs_a_moment_and_takes_the_one_that_is_given(shop: ReconciledShop) -> None:
    shop.describe(start="latest")
    with pytest.raises(RefusedError, match="`makewhole run shop --from TIME`"):
        shop.ask()
    with connect(shop.journal) as journal:
        wanted = Request(id="given", start=NOON, end=BORN + DAY)
        opened = open_interval(journal, shop.pipeline, connections_of(shop.pipeline), wanted)
    assert opened.window.start == NOON


def test_a_start_after_the_interval_is_refused(shop: ReconciledShop) -> None:
    shop.describe(start=(BORN + 2 * DAY).isoformat())
    with pytest.raises(RefusedError, match="shop starts at 2025-03-03T00:00:00"):
        shop.ask()


def undated(numbers: range) -> list[Order]:
    """Return orders without a time."""
    return [order | {"at": None} for order in orders(numbers)]


@pytest.mark.parametrize(
    "start", with_every_change([None, BORN.isoformat(), "earliest"], first=1), ids=["no start", "a time", "earliest"]
)
def test_rows_without_a_time_that_were_there_before_the_first_window_are_counted(
    shop: ReconciledShop, start: str | None
) -> None:
    """Judge rows that came since, the last of which no window has seen, in the next window."""
    shop.describe(start=start)
    old = undated(range(900, 904))
    if start is None:
        trade_and_forget(shop, range(40))
    shop.write("outbox", old[:2])
    shop.write("warehouse", old[1:3])
    shop.write("warehouse", old[3:] * 2)
    shop.trade(orders(range(100, 105)))
    shop.send([order | {"at": orders([105])[0]["at"]} for order in (old[1], old[3])])

    first, closed = shop.whole_way()

    expected = {"O903": ("unexpected", "not_in_source")}
    doubled = {"O903": ("duplicate", "written_before_committed")}
    if start == "earliest":
        assert shop.found(first, LEDGER_HOP) == expected | {"O900": ("missing", "never_produced")}
        assert shop.found(first, STORE_HOP) == doubled | {"O902": ("unexpected", "not_in_source")}
        return
    assert shop.found(first, LEDGER_HOP) == expected
    assert shop.found(first, STORE_HOP) == doubled
    before = 40 if start is None else 0
    assert shop.counts(first, LEDGER_HOP).before_baseline == before + 1
    assert shop.counts(first, STORE_HOP).before_baseline == before + 1
    assert shop.counts(first, LEDGER_HOP).matched == 6
    assert closed.state is WindowState.GAPS
    shop.write("outbox", undated(range(910, 911)))
    again = shop.judged()
    assert again.window.revision == 2
    assert shop.counts(again, LEDGER_HOP).before_baseline == before + 2

    shop.write("outbox", undated(range(911, 912)))
    shop.trade(orders(range(200, 205), 1))
    second, _ = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == dict.fromkeys(("O910", "O911"), ("missing", "never_produced"))
    assert shop.found(second, STORE_HOP) == {}


def test_a_certificate_says_how_many_rows_without_a_time_it_says_nothing_of(shop: ReconciledShop) -> None:
    shop.describe(start=BORN.isoformat())
    shop.write("outbox", undated(range(900, 902)))
    shop.trade(orders(range(100, 105)))

    _, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED
    assert closed.certificate is not None
    limits = [limit["message"] for limit in closed.certificate.body["reach"]["cannot_exclude"]]
    assert limits == [
        "what the producer never wrote into outbox",
        "2 keys of outbox→orders from before the baseline",
    ]


def test_a_log_without_older_records_says_nothing_of_rows_without_a_time(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    shop.write("outbox", undated(range(900, 901)))
    shop.trade(orders(range(100, 105)))

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O900": ("undecidable", "older_than_log")}
    assert closed.state is WindowState.NOT_KNOWN


@pytest.mark.extended
def test_rows_without_a_time_of_a_table_that_joins_later_are_counted_by_its_first_window(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.sql("create table archive (like warehouse)")
    shop.describe(more_points={"archive": store("db", "archive")}, more_hops=[{"from": "outbox", "to": "archive"}])
    later = orders(range(100, 105), 1)
    shop.trade(later)
    shop.write("archive", [*later, *undated(range(900, 902))])

    second, closed = shop.whole_way(1)

    assert shop.found(second, "outbox→archive") == {}
    assert shop.counts(second, "outbox→archive").before_baseline == 2
    assert closed.state is WindowState.CERTIFIED
    shop.write("archive", undated(range(902, 903)))
    third, _ = shop.whole_way(2)
    assert shop.found(third, "outbox→archive") == {"O902": ("unexpected", "not_in_source")}
