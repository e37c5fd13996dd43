"""Test windows over datasets with files whose footer is whole and whose pages do not decode: what these may hold is not
known, whatever reads them first, and the rest is judged."""

import pytest

from makewhole.model.errors import RefusedError
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.integration.files.test_unreadable_files import EVERY, kinds
from tests.world.files_lake import POSITIONED, positioned, rows_of, spoil
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
LOST, TWICE, HELD = (
    ("missing", "lost_after_topic"),
    ("duplicate", "written_before_committed"),
    ("pending", "in_doubt"),
)


def write(shop: FilesShop) -> None:
    """Send orders, and write their rows but for O2; O4 is there twice, and the newest are in two groups of rows."""
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[3:6]])
    shop.load("b.parquet", [MADE[4]])
    shop.place.add("c.parquet", rows_of(MADE[6:]), row_group_size=3, write_page_checksum=True)


@EVERY
def test_keys_that_pages_that_do_not_decode_may_hold_are_not_known_and_the_rest_is_judged(shop: FilesShop) -> None:
    """O2 is surely in no group of these rows; O9 to O11 are in a group that decodes."""
    shop.describe_files()
    write(shop)
    whole = spoil(shop.place, "c.parquet")

    context, closed = shop.whole_way()

    held = dict.fromkeys(["O6", "O7", "O8"], HELD)
    assert shop.found(context, STORE_HOP) == {"O2": LOST, "O4": TWICE, **held}
    [doubt] = shop.evidence(context, STORE_HOP, "O7")["in_doubt"]
    assert (doubt["gid"], doubt["file"], doubt["unreadable"]) == ("c.parquet", True, True)
    assert closed.state is WindowState.NOT_KNOWN
    text = f"1 file of warehouse ({shop.place.path}) cannot be read: c.parquet ({len(whole)} bytes, written "
    assert text in (closed.reason or "")
    assert "UTC; it does not decode). What it holds is not known" in (closed.reason or "")
    shop.place.store.replace("c.parquet", whole)
    assert shop.found(shop.judged(), STORE_HOP) == {"O2": LOST, "O4": TWICE}


def test_no_row_of_a_spoilt_file_is_in_a_snapshot(shop: FilesShop) -> None:
    """Two of its groups are read by two tasks, of which one finds nothing wrong."""
    shop.describe_files()
    write(shop)
    spoil(shop.place, "c.parquet", group=1)

    context = shop.judged()

    assert shop.manifests(context)["warehouse"]["rows"] == 6
    assert kinds(shop, context) >= {IncidentKind.UNREADABLE_FILES}


@pytest.mark.parametrize("column", ["id", "at", "number"])
def test_a_page_of_any_column_that_is_read_bounds_the_window(shop: FilesShop, column: str) -> None:
    """The times are read first, to count rows; a column that nothing names is read by repairs alone."""
    shop.describe_files()
    shop.send(MADE)
    shop.place.add("a.parquet", rows_of(MADE), write_page_checksum=True)
    spoil(shop.place, "a.parquet", column)

    context, closed = shop.whole_way()

    if column == "number":
        assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
    else:
        assert shop.found(context, STORE_HOP) == {str(order["id"]): HELD for order in MADE}
        assert closed.state is WindowState.NOT_KNOWN


def test_a_store_that_is_read_by_keys_leaves_a_spoilt_file_out(shop: FilesShop) -> None:
    shop.describe_files(has_time=False)
    write(shop)
    spoil(shop.place, "c.parquet")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O2": LOST, "O4": TWICE, **dict.fromkeys(["O6", "O7", "O8"], HELD)}
    assert closed.state is WindowState.NOT_KNOWN


def test_the_next_windows_and_another_revision_are_not_certified_beside_it_either(shop: FilesShop) -> None:
    shop.describe_files(late="7d")
    shop.send(MADE)
    shop.place.add("a.parquet", rows_of(MADE), write_page_checksum=True)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    whole = spoil(shop.place, "a.parquet")
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load("c.parquet", later)

    for _ in range(2):
        context, closed = shop.whole_way(1)
        assert shop.found(context, STORE_HOP) == {}
        assert (closed.state, kinds(shop, context)) == (WindowState.NOT_KNOWN, {IncidentKind.UNREADABLE_FILES})
    shop.place.store.replace("a.parquet", whole)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED


def test_positions_in_pages_that_do_not_decode_are_not_known(shop: FilesShop) -> None:
    shop.describe_files(has_key=False, topic_key="position", more={"position": "{partition: p, offset: o}"})
    shop.send(MADE)
    rows = positioned(MADE)
    shop.place.add("a.parquet", [*rows[:3], *rows[4:]], POSITIONED, row_group_size=4, write_page_checksum=True)
    spoil(shop.place, "a.parquet", group=1)

    context, closed = shop.whole_way()

    held = {f'["0","{offset}"]': HELD for offset in range(5, 9)}
    assert shop.found(context, STORE_HOP) == {'["0","3"]': LOST, **held}
    assert closed.state is WindowState.NOT_KNOWN


def test_a_repair_writes_what_is_surely_missing_and_refuses_what_it_cannot_read(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL)
    write(shop)
    spoil(shop.place, "c.parquet")
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    assert plan.counts == {"upsert": 1, "quarantine": 1}
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}


def test_a_plan_stops_at_once_at_a_file_that_was_spoilt_since(shop: FilesShop) -> None:
    """The content of its key there is not known: nothing is written, and it is not tried again."""
    shop.describe_files(compensation=ALL)
    shop.send(MADE)
    shop.place.add("a.parquet", rows_of([*MADE[:2], *MADE[3:]]), write_page_checksum=True)
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    spoil(shop.place, "a.parquet")
    before = shop.place.names()

    with pytest.raises(RefusedError, match=r"a\.parquet .* has pages that do not decode"):
        shop.run(context, plan)
    assert [name for name in shop.place.names() if not name.startswith("_makewhole/")] == before


@pytest.mark.parametrize("column", ["id", "o"])
def test_rows_of_a_spoilt_file_are_repaired_once_it_is_removed(shop: FilesShop, column: str) -> None:
    shop.describe_files(
        compensation=ALL, more={"position": "{partition: p, offset: o}"}, hop={"leave": "[p, o]"}, max_age="24h"
    )
    shop.send(MADE)
    rows = positioned(MADE)
    shop.place.add("a.parquet", rows[:6], POSITIONED)
    shop.place.add("b.parquet", rows[6:], POSITIONED, row_group_size=3, write_page_checksum=True)
    spoil(shop.place, "b.parquet", column)
    assert shop.found(shop.whole_way()[0], STORE_HOP) == dict.fromkeys(["O6", "O7", "O8"], HELD)
    shop.place.store.remove("b.parquet")

    context = shop.judge_and_ask_the_gate()
    lost = [f"O{number}" for number in range(6, 12)]
    assert shop.found(context, STORE_HOP) == dict.fromkeys(lost, LOST)
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    assert sorted(row["id"] for row in shop.place.rows()) == sorted(str(order["id"]) for order in MADE)
