"""Test that rows which were changed behind their records are found, though their times lie in no window's slice: each
window looks at the values of a share of the keys of earlier windows."""

from datetime import timedelta

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole_spark.snapshot import value_census
from tests.integration.spark.test_latest_ever import DIFFERS, STALE, UPSERT, bury, load, repaired, version, versioned
from tests.integration.spark.test_purged_ledgers import HOP as LEDGER_STORE
from tests.integration.spark.test_purged_ledgers import describe as describe_ledger
from tests.integration.spark.test_purged_ledgers import write_both
from tests.integration.spark.test_survivors import repair
from tests.world.combinations import with_every_change
from tests.world.orders import at_day, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TWICE = ("duplicate", "written_before_committed")
TODAY = 3  # more than `late` after the first day


def days(shop: ReconciledShop) -> None:
    """Certify three days of orders, four each, numbered from 0, 10 and 20."""
    for day in range(TODAY):
        made = orders(range(10 * day, 10 * day + 4), day)
        shop.send(made)
        shop.write("warehouse", made)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED


def versions_of_days(shop: ReconciledShop) -> None:
    """Certify three days of versions 5 of orders, four each, numbered from 0, 10 and 20."""
    for day in range(TODAY):
        made = version(range(10 * day, 10 * day + 4), 5, 5, day)
        shop.send(made)
        shop.write("warehouse", made)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED


def today(shop: ReconciledShop) -> None:
    made = orders(range(90, 94), TODAY)
    shop.send(made)
    shop.write("warehouse", made)


@pytest.mark.parametrize("moved", with_every_change(["400 days", "0"], first=1))
def test_a_row_that_was_changed_behind_its_record_is_found(shop: ReconciledShop, moved: str) -> None:
    shop.describe(has_ledger=False, hop=UPSERT)
    days(shop)
    shop.sql("update warehouse set amount = 99, at = at - %s::interval where id in ('O1', 'O12')", moved)
    today(shop)

    context, closed = shop.whole_way(TODAY)

    assert shop.found(context, STORE_HOP) == {"O1": DIFFERS, "O12": DIFFERS}
    assert closed.state is WindowState.GAPS
    assert repaired(shop, TODAY) == {"O1": "repaired", "O12": "repaired"}
    assert shop.sql("select id, amount::text from warehouse where id in ('O1', 'O12') order by id") == [
        ("O1", "1.50"),
        ("O12", "12.50"),
    ]
    assert shop.whole_way(TODAY)[1].state is WindowState.CERTIFIED


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ("amount = 4.25, version = 4", STALE),
        pytest.param("amount = 99", DIFFERS, marks=pytest.mark.extended),
        pytest.param("version = 4", STALE, marks=pytest.mark.extended),
    ],
)
def test_a_version_that_was_set_back_behind_its_record_is_found(
    shop: ReconciledShop, change: str, cause: tuple[str, str]
) -> None:
    versioned(shop, "bigint")
    older = version([1], 4, 4)
    shop.send(older)
    versions_of_days(shop)
    shop.sql(f"update warehouse set {change}, at = at - interval '1 hour' where id = 'O1'")
    made = version([90], 6, 6, TODAY)
    shop.send(made)
    load(shop, made)

    context, closed = shop.whole_way(TODAY)

    assert (shop.found(context, STORE_HOP), closed.state) == ({"O1": cause}, WindowState.GAPS)
    assert repaired(shop, TODAY) == {"O1": "repaired"}
    assert shop.sql("select amount::text, version from warehouse where id = 'O1'") == [("5.25", 5)]


def test_what_rightly_differs_is_no_finding(shop: ReconciledShop) -> None:
    """Rows that were deleted, a later version of another window or behind this one, a key that was deleted."""
    versioned(shop, "bigint")
    versions_of_days(shop)
    newer = version([1, 2], 6, 6, TODAY)
    shop.send(newer)
    load(shop, newer)
    ahead = version([3, 10], 7, 7, TODAY + 1)
    shop.send(ahead)
    load(shop, ahead)
    bury(shop, ["O12"], TODAY)
    shop.sql("delete from warehouse where id in ('O11', 'O12')")
    shop.sql("update warehouse set at = at - interval '9 days' where id in ('O1', 'O3', 'O10')")

    context, closed = shop.whole_way(TODAY)

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    context, closed = shop.whole_way(TODAY + 1)
    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_a_row_that_differs_is_a_finding_of_one_window_whatever_is_done_about_it(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False, hop={"compensation": "{mismatched: report}"})
    days(shop)
    shop.sql("update warehouse set amount = 99, at = at - interval '9 days' where id = 'O1'")
    today(shop)
    context, closed = shop.whole_way(TODAY)
    assert (shop.found(context, STORE_HOP), closed.state) == ({"O1": DIFFERS}, WindowState.GAPS)

    later = orders(range(95, 97), TODAY + 1)
    shop.send(later)
    shop.write("warehouse", later)
    context, closed = shop.whole_way(TODAY + 1)

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    again, closed = shop.whole_way(TODAY)
    assert (shop.found(again, STORE_HOP), closed.state) == ({"O1": DIFFERS}, WindowState.GAPS)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_further_row_is_a_finding_of_the_window_that_it_is_in_and_not_of_those_before(
    shop: ReconciledShop, is_loaded: bool
) -> None:
    """Where a day is judged after the fact, the rows of the days after it are there. The window of the record looks for
    the rows of a key that has none in it."""
    shop.describe(has_ledger=False)
    made = [orders(range(10 * day, 10 * day + 4), day) for day in range(4)]
    first = made[0][0]
    for day, of_day in enumerate(made):
        shop.send(of_day)
        shop.write("warehouse", of_day[1:] if day == 0 and not is_loaded else of_day)
    shop.write("warehouse", [at_day(2.5, first)] * (1 if is_loaded else 2))

    by_day = [shop.found(shop.judged(day), STORE_HOP) for day in range(4)]

    assert by_day == [{} if is_loaded else {"O0": TWICE}, {}, {"O0": TWICE}, {}]


def test_a_further_row_whose_day_is_long_to_come_is_found_today(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    days(shop)
    shop.write("warehouse", [{**orders([1])[0], "at": "2999-01-01T00:00:00+00:00"}])
    today(shop)

    assert shop.found(shop.judged(TODAY), STORE_HOP) == {"O1": TWICE}


def test_values_that_were_read_as_other_columns_are_not_compared(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    days(shop)
    shop.describe(has_ledger=False, compare='{amount: "decimal(8,2)", region: string}')
    shop.sql("update warehouse set region = 'XX' where id = 'O1'")
    today(shop)

    context, closed = shop.whole_way(TODAY)

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    look = shop.manifests(context)["warehouse"]["looked_at"][STORE_HOP]
    assert (look["keys"], look["read_with_other_configuration"]) == (0, [1, 2, 3])


@pytest.mark.extended
def test_each_key_is_looked_at_within_a_round(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of two keys, of which a window looks at one: twelve keys are known when the round begins."""
    monkeypatch.setattr(value_census, "_KEYS_OF_A_SHARE", 2)
    monkeypatch.setattr(value_census, "_SHARES_MOST", 1)
    shop.describe(has_ledger=False)
    days(shop)
    shop.sql("update warehouse set amount = 99, at = at - interval '9 days' where number in (0, 1, 2, 3, 10)")

    keys_of_findings, keys = set[str](), list[int]()
    for day in range(TODAY, TODAY + 10):
        made = orders(range(10 * day, 10 * day + 2), day)
        shop.send(made)
        shop.write("warehouse", made)
        context, _ = shop.whole_way(day)
        keys_of_findings |= {*shop.found(context, STORE_HOP)}
        keys.append(shop.manifests(context)["warehouse"]["looked_at"][STORE_HOP]["keys"])

    assert keys_of_findings == {"O0", "O1", "O2", "O3", "O10"}
    assert max(keys) <= 4  # a share is what a hash makes it


def test_a_row_of_a_ledger_that_feeds_a_table_is_held_to_it(shop: ReconciledShop) -> None:
    describe_ledger(shop)
    for day in range(TODAY):
        write_both(shop, orders(range(10 * day, 10 * day + 4), day))
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    shop.sql("update warehouse set amount = 99, at = at - interval '9 days' where id in ('O1', 'O2')")
    shop.sql("update outbox set amount = 99 where id = 'O2'")
    write_both(shop, orders(range(90, 94), TODAY))

    context, closed = shop.whole_way(TODAY)

    assert (shop.found(context, LEDGER_STORE), closed.state) == ({"O1": DIFFERS}, WindowState.GAPS)


def of_current_state(shop: ReconciledShop) -> None:
    """Three days of a ledger and a table with a row for each key, all of them certified. O2 has two rows in the ledger,
    of which the later counts."""
    describe_ledger(shop, semantics="upsert", compensation="{mismatched: upsert}")
    for day in range(TODAY):
        write_both(shop, orders(range(10 * day, 10 * day + 4), day))
        if day == 1:
            newer = orders([2], 1)[0] | {"amount": "42.00"}
            shop.write("outbox", [newer])
            shop.sql("update warehouse set amount = 42, at = %s where id = 'O2'", newer["at"])
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED


@pytest.mark.parametrize("moved", with_every_change(["0", "3 days", "-9 days"], first=1))
def test_a_row_of_current_state_that_a_ledger_feeds_is_held_to_the_ledger(shop: ReconciledShop, moved: str) -> None:
    of_current_state(shop)
    shop.sql("update warehouse set amount = 99, at = at + %s::interval where id in ('O1', 'O2')", moved)
    write_both(shop, orders(range(90, 94), TODAY))

    context, closed = shop.whole_way(TODAY)

    differs = {"O1": DIFFERS, "O2": DIFFERS}
    assert (shop.found(context, LEDGER_STORE), closed.state) == (differs, WindowState.GAPS)
    assert repaired(shop, TODAY) == {"O1": "repaired", "O2": "repaired"}
    assert shop.sql("select id, amount::text from warehouse where id in ('O1', 'O2') order by id") == [
        ("O1", "1.50"),
        ("O2", "42.00"),
    ]
    assert shop.whole_way(TODAY)[1].state is WindowState.CERTIFIED


def test_a_row_of_current_state_that_the_ledger_explains_is_right_whenever_it_is_touched(shop: ReconciledShop) -> None:
    """Rows that are touched, that have a version of this window, and of the next one; and one whose ledger row changed
    a moment ago, before its loader can know."""
    of_current_state(shop)
    shop.file.write_text(shop.file.read_text().replace("settle: 0s", "settle: 1h"))
    shop.sql("update warehouse set at = at + interval '2 days' where id in ('O1', 'O2')")
    today, tomorrow = (orders([number], day)[0] | {"amount": "7.00"} for number, day in ((10, TODAY), (11, TODAY + 1)))
    shop.let_pass(timedelta(hours=2))
    for newer in (today, tomorrow):
        shop.write("outbox", [newer])
        shop.sql("update warehouse set amount = 7, at = %s where id = %s", newer["at"], newer["id"])
    shop.sql("update warehouse set at = at + interval '1 day' where id = 'O20'")
    write_both(shop, orders(range(90, 94), TODAY))
    shop.let_pass(timedelta(hours=2))
    shop.sql("update outbox set amount = 99 where id = 'O20'")

    context, closed = shop.whole_way(TODAY)

    assert (shop.found(context, LEDGER_STORE), closed.state) == ({}, WindowState.CERTIFIED)


@pytest.mark.parametrize("semantics", ["upsert", "event"])
def test_rows_that_a_narrower_filter_keeps_out_are_reported_and_stay(shop: ReconciledShop, semantics: str) -> None:
    """The ledger has them, and they were right: the file alone explains that they belong to the store no more."""
    described = {"semantics": semantics, "compensation": "{unexpected: quarantine}"}
    describe_ledger(shop, **described, where="\"region = 'EU'\"")
    made, more = orders(range(8)), orders(range(20, 28), 1)
    european = [order for order in made if order["region"] == "EU"]
    shop.write("outbox", made)
    shop.write("warehouse", european)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    describe_ledger(shop, **described, where="\"region = 'US'\"")
    shop.write("outbox", more)
    shop.write("warehouse", [order for order in more if order["region"] == "US"])
    shop.sql("update warehouse set at = at + interval '1 day' where number < 8")

    context = shop.judge_and_ask_the_gate(1)

    explained = dict.fromkeys((order["id"] for order in european), ("undecidable", "filter_changed"))
    assert shop.found(context, LEDGER_STORE) == explained
    assert repair(shop, context).state is WindowState.NOT_KNOWN
    assert len(shop.sql("select id from warehouse where region = 'EU'")) == len(european)


def test_a_certificate_says_what_was_looked_at(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.describe(has_ledger=False)
    days(shop)
    today(shop)

    _, closed = shop.whole_way(TODAY)

    assert closed.certificate is not None
    look = {"windows": [1, 3], "keys": 12, "rows": 0, "gone": [], "read_with_other_configuration": [], "until": 3}
    assert closed.certificate.body["how"]["looked_at"] == {"warehouse": {STORE_HOP: look}}

    monkeypatch.setattr(value_census, "BYTES_WITHOUT_INDEX", -1)
    context, closed = shop.whole_way(TODAY)
    assert closed.certificate is not None
    assert "looked_at" not in closed.certificate.body["how"]
    assert "changed_rows" in {limit["limit"] for limit in closed.certificate.body["reach"]["cannot_exclude"]}
    with connect(shop.journal) as journal:
        kinds = {incident.kind for incident in incidents.of(journal, context.window)}
    assert IncidentKind.VALUES_NOT_LOOKED_AT in kinds
    shop.sql("create index on warehouse (id)")
    context, _ = shop.whole_way(TODAY)
    assert shop.manifests(context)["warehouse"]["looked_at"][STORE_HOP]["keys"] == 12
