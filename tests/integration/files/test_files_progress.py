"""Test windows over datasets whose files say how far their writer is, by their names or by their rows."""

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.world.combinations import with_every_change
from tests.world.files_lake import POSITIONED, positioned
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

EVERY = pytest.mark.parametrize("place", with_every_change(["folder", "s3", "hdfs"], first=2), indirect=True)
MADE = orders(range(12))
ROWS = positioned(MADE)
HOLE = {'["0","3"]': ("missing", "committed_before_written")}
WAITING = {f'["0","{offset}"]': ("pending", "not_yet_consumed") for offset in range(8, 12)}


def describe(shop: FilesShop) -> None:
    """Describe a dataset whose writer goes by its files, and send its records."""
    shop.describe_files(
        has_key=False,
        topic_key="position",
        more={"position": "{partition: p, offset: o}"},
        hop={"progress": "files"},
    )
    shop.send(MADE)


@EVERY
def test_what_is_behind_the_last_offset_that_a_name_says_waits_and_a_hole_before_it_is_missing(shop: FilesShop) -> None:
    describe(shop)
    shop.place.add("orders+0+0000000000+0000000005.parquet", [*ROWS[:3], *ROWS[4:6]], POSITIONED)
    shop.place.add(f"{shop.topic}+0+0000000006+0000000007.parquet", [ROWS[6], ROWS[7]], POSITIONED)
    assert shop.found(shop.judged(), STORE_HOP) == {**HOLE, **WAITING}


def test_where_no_name_says_offsets_the_rows_do(shop: FilesShop) -> None:
    describe(shop)
    shop.place.add("a.parquet", [ROWS[7], *ROWS[:3]], POSITIONED)
    shop.place.add("b.parquet", ROWS[4:7], POSITIONED)
    assert shop.found(shop.judged(), STORE_HOP) == {**HOLE, **WAITING}


def test_a_name_says_more_than_its_rows_where_a_record_is_lost_at_its_end(shop: FilesShop) -> None:
    describe(shop)
    shop.place.add(f"{shop.topic}+0+0000000000+0000000011.parquet", ROWS[:11], POSITIONED)
    verdicts = shop.found(shop.judged(), STORE_HOP)
    assert verdicts == {'["0","11"]': ("missing", "committed_before_written")}


def test_where_rows_go_beyond_what_names_say_the_window_is_not_known_and_says_so(shop: FilesShop) -> None:
    describe(shop)
    shop.place.add(f"{shop.topic}+0+0000000000+0000000007.parquet", ROWS[:8], POSITIONED)
    shop.place.add("compacted.parquet", ROWS[8:10], POSITIONED)

    context, closed = shop.whole_way()

    held = {f'["0","{offset}"]' for offset in range(10, 12)}
    assert shop.found(context, STORE_HOP).keys() == held
    assert closed.state is WindowState.NOT_KNOWN
    with connect(shop.journal) as journal:
        [said] = [incident_sentence(incident) for incident in incidents.of(journal, context.window)]
    assert said.startswith(
        f"the names of files say that {shop.topic}/0 is written up to offset 7, and rows go up to 9, and records of "
    )


def test_a_writer_that_has_written_nothing_of_a_partition_is_at_its_beginning(shop: FilesShop) -> None:
    describe(shop)
    shop.place.add("other+0+0000000000+0000000007.parquet", positioned(MADE[:1], 0, partition=7), POSITIONED)
    verdicts = shop.found(shop.judged(), STORE_HOP)
    assert {key: verdict for key, verdict in verdicts.items() if key.startswith('["0"')} == {
        f'["0","{offset}"]': ("pending", "not_yet_consumed") for offset in range(12)
    }
