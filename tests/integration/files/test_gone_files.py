"""Test windows over datasets of which a manifest names files that are not there: they are named, what they may hold is
not known, and the rest is judged."""

import pytest

from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_committed_files import load
from tests.integration.files.test_files_repair import ALL
from tests.integration.files.test_unreadable_files import EVERY, kinds
from tests.world.files_lake import POSITIONED, positioned, rows_of
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
LOST, TWICE, HELD = (
    ("missing", "lost_after_topic"),
    ("duplicate", "written_before_committed"),
    ("pending", "in_doubt"),
)
WAITING = dict.fromkeys(["O2", *(f"O{number}" for number in range(6, 12))], HELD)


def write(shop: FilesShop) -> bytes:
    """Send orders, and write their rows but for O2, O4 twice; remove the file of the last ones, and return what it
    was."""
    shop.send(MADE)
    load(shop, "manifest", "job-1", [*MADE[:2], *MADE[3:6]])
    load(shop, "manifest", "job-2", [MADE[4]])
    load(shop, "manifest", "job-3", MADE[6:])
    content = shop.place.content("job-3/a.parquet")
    shop.place.store.remove("job-3/a.parquet")
    return content


@EVERY
def test_what_a_file_that_a_manifest_names_may_hold_is_not_known_while_it_is_gone(shop: FilesShop) -> None:
    shop.describe_files(more={"committed": "manifest"}, max_age="1s")
    content = write(shop)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O4": TWICE, **WAITING}
    assert (closed.state, kinds(shop, context)) == (
        WindowState.NOT_KNOWN,
        {IncidentKind.UNREADABLE_FILES, IncidentKind.PREPARED_TRANSACTION},
    )
    assert f"1 file of warehouse ({shop.place.path}) cannot be read: job-3/a.parquet (listed " in str(closed.reason)
    assert "UTC; it is gone). What it holds is not known. Restore what is gone." in str(closed.reason)
    shop.place.store.replace("job-3/a.parquet", content)
    assert shop.found(shop.judged(), STORE_HOP) == {"O2": LOST, "O4": TWICE}


def test_what_a_file_held_is_missing_and_repaired_once_no_manifest_names_it(shop: FilesShop) -> None:
    shop.describe_files(more={"committed": "manifest"}, compensation=ALL)
    write(shop)
    assert shop.found(shop.judge_and_ask_the_gate(), STORE_HOP) == {"O4": TWICE, **WAITING}
    shop.place.store.remove("job-3/_manifest.json")
    before = shop.place.rows()

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {"O4": TWICE, **dict.fromkeys(WAITING, LOST)}
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert set(shop.refused(plan)) == {"O4"}
    assert {row["id"] for row in shop.place.rows()} == {row["id"] for row in rows_of(MADE)}
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.place.rows()) == ({}, before)


def test_the_name_of_a_file_that_is_gone_bounds_what_waits(shop: FilesShop) -> None:
    name = "orders+0+0000000008+0000000011.parquet"
    more = {"position": "{partition: p, offset: o}", "committed": "manifest"}
    shop.describe_files(has_key=False, topic_key="position", more=more)
    shop.send(MADE)
    rows = positioned(MADE)
    shop.place.add("first.parquet", [*rows[:3], *rows[4:8]], POSITIONED)
    shop.place.store.replace("_manifest.json", f'["first.parquet", "{name}"]'.encode())

    context, closed = shop.whole_way()

    held = {f'["0","{offset}"]': HELD for offset in range(8, 12)}
    assert shop.found(context, STORE_HOP) == {'["0","3"]': LOST, **held}
    assert closed.state is WindowState.NOT_KNOWN
