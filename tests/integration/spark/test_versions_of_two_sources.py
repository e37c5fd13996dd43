"""Test versions of two sources that go into one table, each of them a topic or a ledger: the latest of both counts."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.spark.test_latest_ever import DIFFERS, STALE
from tests.integration.spark.test_sources_together import numbered, set_back
from tests.integration.spark.test_survivors import repair, send
from tests.world.orders import COLUMNS, Order
from tests.world.pipeline_file import ledger, pipeline_file, store, topic
from tests.world.windows import Found, ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FIRST, SECOND = "first→warehouse", "second→warehouse"
UNKNOWN = ("undecidable", "order_unknown")
LEDGERS = ("ledger", "ledger")
PAIRS = [
    pytest.param(LEDGERS, id="ledgers"),
    pytest.param(("topic", "ledger"), id="topic_and_ledger", marks=pytest.mark.extended),
    pytest.param(("topic", "topic"), id="topics", marks=pytest.mark.extended),
]
A_DAY = (
    [numbered(1, 1, "1.00"), numbered(2, 5, "2.00"), numbered(3, 1, "3.00")],
    [numbered(1, 2, "1.10"), numbered(2, 4, "2.90"), numbered(4, 1, "4.00")],
)
RIGHT = [("O1", "1.10", 2), ("O2", "2.00", 5), ("O3", "3.00", 1), ("O4", "4.00", 1)]


@dataclass(frozen=True, kw_only=True)
class TwoSources:
    """A table that two sources fill: ledgers, which hold the latest version of each, or topics."""

    shop: ReconciledShop
    topics: dict[str, str]

    def bring(self, first: Iterable[Order], second: Iterable[Order]) -> None:
        """Put versions into the sources."""
        for name, made in (("first", first), ("second", second)):
            if name in self.topics:
                send(self.shop, self.topics[name], made)
            else:
                _write_over(self.shop, name, made)

    def load(self, made: Iterable[Order]) -> None:
        """Write versions over the rows of their keys, whatever they hold."""
        _write_over(self.shop, "warehouse", made)

    def found(self, context: WindowContext) -> tuple[Found, Found]:
        """Return what was found on both hops."""
        return self.shop.found(context, FIRST), self.shop.found(context, SECOND)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the orders of the first day, as the table holds them."""
        return self.shop.sql("select id, amount::text, version from warehouse where length(id) < 3 order by id")

    def certify_a_day(self) -> None:
        """Certify a day, and bring and load orders of the next."""
        self.bring(*A_DAY)
        self.load([*A_DAY[0][1:], A_DAY[1][0], A_DAY[1][2]])
        assert self.shop.whole_way()[1].state is WindowState.CERTIFIED
        first, second = ([numbered(at + number, 1, "9.00", 1) for number in range(6)] for at in (100, 200))
        self.bring(first, second)
        self.load([*first, *second])


def _write_over(shop: ReconciledShop, table: str, made: Iterable[Order]) -> None:
    rows = [*made]
    shop.sql(f"delete from {table} where id = any(%s)", [order["id"] for order in rows])
    shop.write(table, rows)


def two_sources(shop: ReconciledShop, kinds: tuple[str, str], *, has_version: bool = True) -> TwoSources:
    """Describe a table of two sources, with versions or without."""
    shop.sql("alter table warehouse add column version int")
    column, place = ({"version": name} if has_version else {} for name in ("version", '"$.version"'))
    topics: dict[str, str] = {}
    points = {"warehouse": store("db", "warehouse", **column)}
    for name, kind in zip(("first", "second"), kinds, strict=True):
        if kind == "topic":
            topics[name] = shop.add_topic()
            points[name] = topic("log", topics[name], **place)
        else:
            shop.sql(f"create table {name} (like warehouse)")
            points[name] = ledger("db", name, **column)
    settings = {
        "start": "earliest",
        "settle": "0s",
        "late": "1h",
        "compare": '{amount: "decimal(8,2)"}',
        "compensation": "{limits: {share: 1.0}, missing: upsert, mismatched: upsert}",
    }
    hops = [{"from": name, "to": "warehouse", "semantics": "upsert"} for name in ("first", "second")]
    columns = COLUMNS if has_version else COLUMNS | {"version": "int"}
    shop.file.write_text(pipeline_file("shop", points=points, hops=hops, settings=settings, columns=columns))
    return TwoSources(shop=shop, topics=topics)


@pytest.mark.parametrize("kinds", PAIRS)
def test_what_lacks_or_is_stale_gets_the_latest_of_both(shop: ReconciledShop, kinds: tuple[str, str]) -> None:
    two = two_sources(shop, kinds)
    in_both = numbered(5, 3, "5.00"), numbered(5, 4, "5.50")
    two.bring([*A_DAY[0], in_both[0]], [*A_DAY[1], in_both[1]])
    two.load([A_DAY[0][0], A_DAY[1][1], A_DAY[0][2], A_DAY[1][2]])
    context = shop.judge_and_ask_the_gate()
    verdicts = two.found(context)
    assert [of_store.pop("O5")[0] for of_store in verdicts] == ["missing", "missing"]
    assert verdicts == ({"O2": STALE}, {"O1": STALE})

    closed = repair(shop, context)

    assert two.rows() == [*RIGHT, ("O5", "5.50", 4)]
    assert closed.state is WindowState.CERTIFIED, closed.reason


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("kinds", PAIRS)
def test_rows_that_were_set_back_get_the_latest_of_both(
    shop: ReconciledShop, kinds: tuple[str, str], is_behind: bool
) -> None:
    """Loaders write over the rows of a judged day, with the time of today, or with their times left as they were."""
    two = two_sources(shop, kinds)
    two.certify_a_day()
    for key, version, amount in ((1, 1, "1.00"), (2, 4, "2.90"), (3, 1, "0.01"), (4, 1, "0.02")):
        set_back(shop, key, version, amount)
    if is_behind:
        shop.sql("update warehouse set at = at - interval '1 day' where length(id) < 3")
    context = shop.judge_and_ask_the_gate(1)
    assert two.found(context) == ({"O2": STALE, "O3": DIFFERS}, {"O1": STALE, "O4": DIFFERS})

    closed = repair(shop, context)

    assert two.rows() == RIGHT
    assert closed.state is WindowState.CERTIFIED, closed.reason


@pytest.mark.parametrize("kinds", PAIRS)
def test_rows_that_were_touched_and_hold_the_latest_of_both_are_right(
    shop: ReconciledShop, kinds: tuple[str, str]
) -> None:
    two = two_sources(shop, kinds)
    two.certify_a_day()
    shop.sql("update warehouse set at = at + interval '1 day' where length(id) < 3")

    context, closed = shop.whole_way(1)

    assert two.found(context) == ({}, {})
    assert closed.state is WindowState.CERTIFIED, closed.reason


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("kinds", PAIRS)
def test_a_source_that_overtakes_the_other_decides(
    shop: ReconciledShop, kinds: tuple[str, str], is_loaded: bool
) -> None:
    two = two_sources(shop, kinds)
    two.certify_a_day()
    newer = numbered(1, 3, "1.30", 1), numbered(2, 6, "2.60", 1)
    two.bring(newer[:1], newer[1:])
    if is_loaded:
        two.load(newer)
    context = shop.judge_and_ask_the_gate(1)
    assert two.found(context) == (({}, {}) if is_loaded else ({"O1": STALE}, {"O2": STALE}))

    closed = repair(shop, context)

    assert two.rows() == [("O1", "1.30", 3), ("O2", "2.60", 6), *RIGHT[2:]]
    assert closed.state is WindowState.CERTIFIED, closed.reason


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("kinds", PAIRS)
def test_an_older_version_that_the_other_source_brings_later_is_stale(
    shop: ReconciledShop, kinds: tuple[str, str], is_loaded: bool
) -> None:
    """A loader that writes whatever comes puts it over the later one: the window of that one repairs it."""
    two = two_sources(shop, kinds)
    two.certify_a_day()
    older = [numbered(4, 0, "4.90", 1)]
    two.bring(older, [])
    if is_loaded:
        two.load(older)
    context = shop.judge_and_ask_the_gate(1)
    assert two.found(context) == ({"O4": STALE} if is_loaded else {}, {})

    closed = repair(shop, context)

    if is_loaded:
        assert closed.state is WindowState.GAPS
        outcome, reason = shop.outcome_of(context, FIRST, "O4")
        assert (outcome, "second has a later version" in str(reason)) == ("refused", True)
        assert repair(shop, shop.judge_and_ask_the_gate(0)).state is WindowState.CERTIFIED
        closed = shop.whole_way(1)[1]
    assert two.rows() == RIGHT
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_rows_of_which_one_ledger_lost_its_own_are_held_to_the_other(shop: ReconciledShop) -> None:
    two = two_sources(shop, LEDGERS)
    two.certify_a_day()
    shop.sql("delete from second where id in ('O1', 'O4')")
    shop.sql("delete from first where id in ('O2', 'O3')")
    shop.sql("update warehouse set at = at + interval '1 day' where length(id) < 3")
    assert two.found(shop.judge_and_ask_the_gate(1)) == ({}, {})

    for key, version, amount in ((1, 1, "1.00"), (2, 4, "2.90"), (3, 1, "0.01"), (4, 1, "0.02")):
        set_back(shop, key, version, amount)
    context = shop.judge_and_ask_the_gate(1)
    closed = repair(shop, context)

    assert two.found(context) == ({"O2": STALE, "O3": DIFFERS}, {"O1": STALE, "O4": DIFFERS})
    assert closed.state is WindowState.GAPS


@pytest.mark.parametrize("kinds", PAIRS)
def test_without_versions_a_row_that_neither_has_is_not_certified(shop: ReconciledShop, kinds: tuple[str, str]) -> None:
    two = two_sources(shop, kinds, has_version=False)
    made = [numbered(key, 1, f"{key}.50") for key in range(1, 5)]
    two.bring(made[:3], made[1:])
    two.load(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    more = [numbered(100 + key, 1, "9.00", 1) for key in range(8)]
    two.bring(more[:4], more[4:])
    two.load([*more, *(made[key] | {"at": numbered(key, 1, "1.00", 1)["at"]} for key in (0, 2))])
    for key in (1, 2, 4):
        set_back(shop, key, None, "0.07")
    context = shop.judge_and_ask_the_gate(1)

    by_store = [{key: verdict for key, (verdict, _) in of_store.items()} for of_store in two.found(context)]

    assert by_store == [{"O1": "mismatched", "O2": "mismatched"}, {"O2": "mismatched", "O4": "mismatched"}]
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert two.rows() == [(f"O{key}", f"{key}.50", 1) for key in range(1, 5)]


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_older_version_that_comes_into_its_ledger_later_counts_only_where_the_newer_is_gone(
    shop: ReconciledShop, is_gone: bool
) -> None:
    two = two_sources(shop, LEDGERS)
    two.certify_a_day()
    if is_gone:
        shop.sql("delete from first where id = 'O2'")
        shop.sql("delete from second where id = 'O2'")
    older = [numbered(2, 3, "2.30", 1)]
    shop.write("first", older)
    two.load(older)
    context = shop.judge_and_ask_the_gate(1)
    assert two.found(context) == ({} if is_gone else {"O2": STALE}, {})

    closed = repair(shop, context)

    assert two.rows() == [RIGHT[0], ("O2", "2.30", 3) if is_gone else RIGHT[1], *RIGHT[2:]]
    assert closed.state is WindowState.CERTIFIED, closed.reason
