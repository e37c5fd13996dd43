"""Test windows over datasets with files that cannot be read: what they may hold is not known, the rest is judged."""

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.files.files_shop import FilesShop
from tests.world.combinations import with_every_change
from tests.world.files_lake import POSITIONED, FilesPlace, positioned
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

EVERY = pytest.mark.parametrize("place", with_every_change(["folder", "s3", "hdfs"], first=2), indirect=True)
MADE = orders(range(12))
FIRST, LAST = "orders+0+0000000000+0000000007.parquet", "orders+0+0000000008+0000000011.parquet"
CERTAIN = {
    '["0","3"]': ("missing", "lost_after_topic"),
    '["0","5"]': ("duplicate", "written_before_committed"),
}


def cut_off(place: FilesPlace, path: str) -> bytes:
    """Cut a file off in its middle; return what it was."""
    whole = place.content(path)
    place.store.replace(path, whole[: len(whole) // 2])
    return whole


def kinds(shop: FilesShop, context: WindowContext) -> set[IncidentKind]:
    """Return the kinds of the incidents of a window."""
    with connect(shop.journal) as journal:
        return {incident.kind for incident in incidents.of(journal, context.window)}


def write_by_position(shop: FilesShop) -> None:
    """Send orders, and write their rows but for offset 3; offset 5 is there twice."""
    shop.describe_files(has_key=False, topic_key="position", more={"position": "{partition: p, offset: o}"})
    shop.send(MADE)
    rows = positioned(MADE)
    shop.place.add(FIRST, [*rows[:3], *rows[4:8]], POSITIONED)
    shop.place.add("copy.parquet", [rows[5]], POSITIONED)
    shop.place.add(LAST, rows[8:], POSITIONED)


@EVERY
def test_positions_that_the_name_of_a_file_bounds_are_not_known_and_the_rest_is_judged(shop: FilesShop) -> None:
    write_by_position(shop)
    whole = cut_off(shop.place, LAST)

    context, closed = shop.whole_way()

    held = {f'["0","{offset}"]': ("pending", "in_doubt") for offset in range(8, 12)}
    assert shop.found(context, STORE_HOP) == {**CERTAIN, **held}
    [doubt] = shop.evidence(context, STORE_HOP, '["0","9"]')["in_doubt"]
    assert (doubt["gid"], doubt["file"], doubt["unreadable"]) == (LAST, True, True)
    assert closed.state is WindowState.NOT_KNOWN
    text = (
        f"1 file of warehouse ({shop.place.path}) is no whole Parquet file: {LAST} ({len(whole) // 2} bytes, written "
    )
    assert text in (closed.reason or "")
    assert "What it holds is not known. Have their writer write them again" in (closed.reason or "")
    shop.place.store.replace(LAST, whole)
    assert shop.found(shop.judged(), STORE_HOP) == CERTAIN


def test_a_file_whose_name_bounds_nothing_may_hold_every_key_that_is_missing(shop: FilesShop) -> None:
    """O4 is there twice in files that can be read, which is certain; O2, O10 and O11 may be in the other one."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", [*MADE[:2], *MADE[3:10]])
    shop.load("b.parquet", [MADE[4]])
    shop.load("c.parquet", MADE[10:])
    whole = cut_off(shop.place, "c.parquet")

    context, closed = shop.whole_way()

    held = dict.fromkeys(["O2", "O10", "O11"], ("pending", "in_doubt"))
    twice = {"O4": ("duplicate", "written_before_committed")}
    assert shop.found(context, STORE_HOP) == {**twice, **held}
    assert closed.state is WindowState.NOT_KNOWN
    shop.place.store.replace("c.parquet", whole)
    assert shop.found(shop.judged(), STORE_HOP) == {**twice, "O2": ("missing", "lost_after_topic")}


def test_a_window_of_which_nothing_is_missing_is_not_certified_beside_a_file_that_cannot_be_read(
    shop: FilesShop,
) -> None:
    """It may hold rows that are there already, or some of no record."""
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE)
    shop.place.store.publish("b.parquet", b"")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.NOT_KNOWN
    shop.place.store.remove("b.parquet")
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_what_may_be_in_a_file_that_cannot_be_read_is_not_missing_however_long_it_waits(shop: FilesShop) -> None:
    shop.describe_files(max_age="1s")
    shop.send(MADE)
    shop.load("a.parquet", MADE[1:])
    shop.place.store.publish("b.parquet", b"PAR1")
    shop.whole_way()
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load("c.parquet", later)

    second = shop.judged(1)

    assert shop.found(second, STORE_HOP) == {"O0": ("pending", "in_doubt")}
    assert IncidentKind.UNREADABLE_FILES in kinds(shop, second)


def test_rows_of_an_earlier_window_that_cannot_be_read_now_are_not_said_to_be_gone(shop: FilesShop) -> None:
    shop.describe_files(late="7d")
    shop.send(MADE)
    shop.load("a.parquet", MADE[:6])
    shop.load("b.parquet", MADE[6:])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    whole = cut_off(shop.place, "b.parquet")
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load("c.parquet", later)

    context, closed = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.NOT_KNOWN
    assert kinds(shop, context) == {IncidentKind.UNREADABLE_FILES}
    shop.place.store.replace("b.parquet", whole)
    context, closed = shop.whole_way(1)
    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED
