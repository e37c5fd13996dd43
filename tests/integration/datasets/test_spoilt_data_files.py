"""Test windows over Iceberg tables with data files that do not decode: what they may hold is not known, and the rest is
judged."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.errors import RefusedError
from makewhole.model.incident import IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_faults import newest_file
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_lake import ORDERS
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(12))
LOST, TWICE, HELD = (
    ("missing", "lost_after_topic"),
    ("duplicate", "written_before_committed"),
    ("pending", "in_doubt"),
)


def spoil(shop: IcebergShop, column: str = "amount", group: int = 0) -> tuple[Path, bytes]:
    """Overwrite a part of the pages of a column in the newest file; return its path, and what it was."""
    path = Path(newest_file(shop).removeprefix("file://"))
    whole = path.read_bytes()
    metadata = pq.read_metadata(path).row_group(group)
    [chunk] = [
        metadata.column(at) for at in range(metadata.num_columns) if metadata.column(at).path_in_schema == column
    ]
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    at = first + chunk.total_compressed_size // 3
    path.write_bytes(whole[:at] + b"\xff" * 24 + whole[at + 24 :])
    return path, whole


def write(shop: IcebergShop) -> None:
    """Send orders, and write their rows but for O2; O4 is there twice, and the newest are in two groups of rows."""
    shop.lake.make_table(TABLE, ORDERS, properties={"write.parquet.row-group-limit": "3"})
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[3:6]])
    shop.load([MADE[4]])
    shop.load(MADE[6:])


def kinds(shop: IcebergShop, context: WindowContext) -> set[IncidentKind]:
    """Return the kinds of the incidents of a window."""
    with connect(shop.journal) as journal:
        return {incident.kind for incident in incidents.of(journal, context.window)}


def test_keys_that_a_group_that_does_not_decode_may_hold_are_not_known_and_the_rest_is_judged(
    shop: IcebergShop,
) -> None:
    """O2 is surely in no group of these rows; O9 to O11 are in a group that decodes."""
    shop.describe_lake()
    write(shop)
    path, whole = spoil(shop)

    context, closed = shop.whole_way()

    held = dict.fromkeys(["O6", "O7", "O8"], HELD)
    assert shop.found(context, STORE_HOP) == {"O2": LOST, "O4": TWICE, **held}
    assert shop.manifests(context)["warehouse"]["rows"] == 6
    [doubt] = shop.evidence(context, STORE_HOP, "O7")["in_doubt"]
    assert (doubt["gid"], doubt["unreadable"]) == (f"file://{path}", True)
    assert closed.state is WindowState.NOT_KNOWN
    assert f"1 file of warehouse ({TABLE}) cannot be read: file://{path} ({len(whole)} bytes, written " in str(
        closed.reason
    )
    path.write_bytes(whole)
    assert shop.found(shop.judged(), STORE_HOP) == {"O2": LOST, "O4": TWICE}


@pytest.mark.parametrize("length", [0, 4, 700])
def test_a_data_file_without_a_whole_footer_may_hold_every_key_that_is_missing(shop: IcebergShop, length: int) -> None:
    """Whatever its manifest says of the keys in it, by which it need not be read for O2."""
    shop.describe_lake()
    write(shop)
    path = Path(newest_file(shop).removeprefix("file://"))
    whole = path.read_bytes()
    path.write_bytes(whole[:length])

    context, closed = shop.whole_way()

    verdicts = shop.found(context, STORE_HOP)
    assert {key: verdicts[key] for key in ("O4", "O6", "O11")} == {"O4": TWICE, "O6": HELD, "O11": HELD}
    assert closed.state is WindowState.NOT_KNOWN
    path.write_bytes(whole)
    assert shop.found(shop.judged(), STORE_HOP) == {"O2": LOST, "O4": TWICE}


@pytest.mark.parametrize("column", ["id", "at"])
def test_times_and_keys_that_do_not_decode_bound_the_window_and_the_next_ones(shop: IcebergShop, column: str) -> None:
    """Times are read first, to count rows."""
    shop.describe_lake(late="7d")
    shop.send(MADE)
    shop.load(MADE)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    path, whole = spoil(shop, column)
    later = orders(range(100, 104), 1)
    shop.send(later)
    shop.load(later)

    for _ in range(2):
        context, closed = shop.whole_way(1)
        assert shop.found(context, STORE_HOP) == {}
        assert (closed.state, kinds(shop, context)) == (WindowState.NOT_KNOWN, {IncidentKind.UNREADABLE_FILES})
    path.write_bytes(whole)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED


def test_a_plan_stops_at_once_at_a_file_that_was_spoilt_since(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[3:]])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    spoil(shop)
    before = shop.lake.table(TABLE).current_snapshot()

    with pytest.raises(RefusedError, match=r"of dw\.warehouse does not decode"):
        shop.run(context, plan)
    assert shop.lake.table(TABLE).current_snapshot() == before
