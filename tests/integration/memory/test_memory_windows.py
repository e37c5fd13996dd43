"""Test whole windows over a table in memory: what is found, repaired, proven and undone, row by row."""

from collections.abc import Mapping
from typing import Any

import pytest

from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from makewhole.tables.effects import EffectKind
from makewhole.window.context import WindowContext
from tests.integration.memory.memory_shop import ORDERS, MemoryShop, in_order, row_of
from tests.memory.rows import RowValues
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, store
from tests.world.shop import STORE_HOP
from tests.world.windows import Found

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ALL: Settings = {
    "limits": "{share: 1.0}",
    "approval": "{above_actions: 0}",
    "missing": "upsert",
    "duplicate": "quarantine",
    "mismatched": "upsert",
    "unexpected": "quarantine",
}
"""Every remedy that writes a store's rows, and each plan waits for a person."""
MADE = orders(range(12))
FOUND: Found = {
    "O2": ("missing", "lost_after_topic"),
    "O3": ("missing", "lost_after_topic"),
    "O4": ("duplicate", "written_before_committed"),
    "O6": ("mismatched", "value_differs"),
    "O90": ("unexpected", "not_in_source"),
}


def other(order: Order) -> Order:
    """Return an order with another amount."""
    return {**order, "amount": "99.99"}


def trade_badly(shop: MemoryShop) -> None:
    """Send orders of which the loader lost O2 and O3, wrote O4 twice and O6 wrongly; O90 it took from elsewhere."""
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", [*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:], MADE[4], *orders([90])])


def without(rows: Mapping[str, RowValues], *places: str) -> dict[str, RowValues]:
    """Return the rows that lie at other places."""
    assert set(places) <= set(rows)
    return {place: values for place, values in rows.items() if place not in places}


def forecast_of(shop: MemoryShop, context: WindowContext, plan: str) -> dict[str, dict[Forecast, int]]:
    """Return what a dry run says of the actions of a plan, by remedy."""
    preview = dry_run(shop.journal, plan, targets_of(context.pipeline, context.connections))
    return {part.remedy: {kind: count for kind, count in part.forecasts.items() if count} for part in preview.parts}


def test_a_window_of_events_is_judged_repaired_certified_and_undone(shop: MemoryShop) -> None:
    trade_badly(shop)
    before, rows_before = shop.placed(), shop.rows()

    context = shop.judge_and_ask_the_gate()
    counts = shop.counts(context, STORE_HOP)
    assert shop.found(context, STORE_HOP) == FOUND
    assert (counts.source_keys, counts.matched) == (12, 8)
    assert (counts.missing, counts.duplicate, counts.mismatched, counts.unexpected) == (2, 1, 1, 1)

    plan = shop.planned(context)
    assert plan.counts == {"upsert": 3, "quarantine": 2}
    assert forecast_of(shop, context, plan.id) == {"upsert": {Forecast.WOULD: 3}, "quarantine": {Forecast.WOULD: 2}}
    with pytest.raises(RefusedError, match="is awaiting_approval"):
        shop.run(context, plan)
    assert shop.placed() == before

    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.placed() == {
        **without(before, "(5,1)", "(11,1)", "(12,1)"),
        "(5,2)": row_of(MADE[6]),
        "(13,1)": row_of(MADE[2]),
        "(14,1)": row_of(MADE[3]),
    }
    assert shop.rows() == in_order(map(row_of, MADE))

    closed = shop.close(context)
    assert shop.outcomes(context) == dict.fromkeys(FOUND, "repaired")
    assert (closed.state, closed.reason, shop.certificates()) == (WindowState.CERTIFIED, None, 1)

    undo = shop.undo(context, plan)
    assert (undo.counts, undo.undoes) == ({"restore": 5}, plan.id)
    shop.approve(undo)
    for _ in range(2):
        shop.run(context, undo)
        assert shop.refused(undo) == {}
        assert shop.rows() == rows_before
        assert without(shop.placed(), "(5,3)", "(15,1)", "(16,1)") == without(before, "(5,1)", "(11,1)", "(12,1)")


def test_a_table_whose_columns_have_other_names_is_repaired_as_any_other(shop: MemoryShop) -> None:
    """Its own column `amount` is another one, and stays empty on purpose."""
    names = {"id": "Nr.", "amount": "total"}
    shop.make_table("sales", {names.get(name, name): kind for name, kind in ORDERS.items()} | {"amount": "text"})
    columns = "{id: Nr., amount: total, other: amount}"
    sales = store("db", "sales", key="Nr.", columns=columns)
    shop.describe(
        has_ledger=False,
        compensation=ALL,
        more_points={"warehouse": sales},
        hop={"leave": "[other]", "write": "{id: string, number: bigint, region: string, at: timestamp}"},
    )

    def in_table(order: Mapping[str, Any]) -> Order:
        return {names.get(name, name): value for name, value in order.items()} | {"amount": None}

    shop.send(MADE)
    loaded = [*MADE[:2], *MADE[4:6], other(MADE[6]), *MADE[7:], MADE[4], *orders([90])]
    shop.write("sales", map(in_table, loaded))
    before = shop.rows("sales")

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == FOUND
    plan = shop.planned(context)
    assert forecast_of(shop, context, plan.id) == {"upsert": {Forecast.WOULD: 3}, "quarantine": {Forecast.WOULD: 2}}
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {}
    assert shop.rows("sales") == in_order(in_table(row_of(order)) for order in MADE)
    assert shop.close(context).state is WindowState.CERTIFIED
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert shop.rows("sales") == before


def test_what_a_plan_and_its_undo_did_is_kept_beside_the_rows(shop: MemoryShop) -> None:
    trade_badly(shop)
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)

    kept = shop.kept()
    done = [(effect.kind, effect.place) for effect in kept.effects if effect.plan == plan.id]
    undone = [(effect.kind, effect.place) for effect in kept.effects if effect.plan == undo.id]
    assert done == [
        (EffectKind.INSERTED, "(13,1)"),
        (EffectKind.INSERTED, "(14,1)"),
        (EffectKind.UPDATED, "(5,2)"),
        (EffectKind.MOVED, "(11,1)"),
        (EffectKind.MOVED, "(12,1)"),
    ]
    assert undone == [
        (EffectKind.INSERTED, "(15,1)"),
        (EffectKind.INSERTED, "(16,1)"),
        (EffectKind.UPDATED, "(5,3)"),
        (EffectKind.DELETED, "(14,1)"),
        (EffectKind.DELETED, "(13,1)"),
    ]
    assert [moved.is_back for moved in kept.aside.values()] == [True, True]
    assert {name: list(receipts) for (name, _), receipts in kept.receipts.items()} == {plan.id: [0], undo.id: [0]}
    assert kept.views == {}


def test_of_versions_an_older_row_is_repaired_and_a_newer_one_is_left_alone(shop: MemoryShop) -> None:
    shop.make_table(types={**ORDERS, "version": "bigint"})
    shop.more_columns = {"version": "bigint"}
    shop.describe(has_ledger=False, compensation=ALL, is_upsert=True, has_version=True)
    first: list[Order] = [{**order, "version": 1} for order in orders(range(8))]
    second = [{**order, "version": 2, "amount": "77.25"} for order in first]
    newer = {**first[3], "version": 3, "amount": "5.00"}
    stray = {**orders([90])[0], "version": 1}
    shop.send([*first, *second[:4]])
    shop.write("warehouse", [*second[:2], first[2], newer, *first[4:6], first[5], first[6], stray])
    before, rows_before = shop.placed(), shop.rows()

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O2": ("mismatched", "stale_version"),
        "O3": ("mismatched", "value_differs"),
        "O5": ("duplicate", "written_before_committed"),
        "O7": ("missing", "lost_after_topic"),
        "O90": ("unexpected", "not_in_source"),
    }
    plan = shop.planned(context)
    assert plan.counts == {"upsert": 3, "quarantine": 2}
    assert forecast_of(shop, context, plan.id)["upsert"] == {Forecast.WOULD: 2, Forecast.REFUSED: 1}
    shop.approve(plan)
    shop.run(context, plan)

    assert {key: str(refusal) for key, refusal in shop.refused(plan).items()} == {
        "O3": "stale: the row is of a newer version than the record"
    }
    assert shop.placed() == {
        **without(before, "(3,1)", "(7,1)", "(9,1)"),
        "(3,2)": row_of(second[2]),
        "(10,1)": row_of(first[7]),
    }
    assert shop.placed()["(4,1)"] == row_of(newer)
    closed = shop.close(context)
    assert shop.outcomes(context) == {
        **dict.fromkeys(("O2", "O5", "O7", "O90"), "repaired"),
        "O3": "refused",
    }
    assert (closed.state, closed.reason) == (WindowState.GAPS, f"{STORE_HOP}: 1 key mismatched, 0 allowed")

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.rows()) == ({}, rows_before)


@pytest.mark.parametrize("come_late", [False, True], ids=["nothing", "late rows"])
def test_rows_that_come_late_are_found_by_the_next_window(shop: MemoryShop, *, come_late: bool) -> None:
    """Of a slice that was read before only the rows are read that came since, or were changed."""
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", MADE)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.write("warehouse", [*later, *([MADE[5], *orders([91])] if come_late else [])])

    second = shop.judged(1)

    late: Found = {"O5": ("duplicate", "written_before_committed"), "O91": ("unexpected", "not_in_source")}
    assert shop.found(second, STORE_HOP) == (late if come_late else {})
    manifest = shop.manifests(second)["warehouse"]
    assert manifest["rows"] - manifest["looked_at"][STORE_HOP]["rows"] == (6 if come_late else 4)


@pytest.mark.parametrize("part", ["$.region", "$.number"], ids=["texts", "a number"])
def test_keys_of_several_parts_are_found_in_their_columns(shop: MemoryShop, part: str) -> None:
    column = part.removeprefix("$.")
    shop.describe(has_ledger=False, compensation=ALL, key=f"[id, {column}]", topic_key=f'["$.id", "{part}"]')
    shop.send(MADE)
    shop.write("warehouse", [*MADE[:4], other(MADE[4]), *MADE[6:], MADE[7]])

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        f'["O4","{MADE[4][column]}"]': ("mismatched", "value_differs"),
        f'["O5","{MADE[5][column]}"]': ("missing", "lost_after_topic"),
        f'["O7","{MADE[7][column]}"]': ("duplicate", "written_before_committed"),
    }
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert shop.rows() == in_order(map(row_of, MADE))
    assert shop.close(context).state is WindowState.CERTIFIED


@pytest.mark.on_spark
@pytest.mark.timeout(300)
def test_python_workers_of_spark_find_the_kind_and_read_its_rows(shop: MemoryShop) -> None:
    trade_badly(shop)
    context = shop.judged()
    assert shop.found(context, STORE_HOP) == FOUND
    assert shop.counts(context, STORE_HOP).matched == 8
    assert shop.manifests(context)["warehouse"]["rows"] == 12
