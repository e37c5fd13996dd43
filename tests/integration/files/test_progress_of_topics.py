"""Test how far what writes a folder has come in one topic, where records of several topics come into it."""

from dataclasses import replace

import pyarrow as pa
import pytest

from makewhole.datasets.files.file_tables import FileTables
from makewhole.file_stores.open_store import FILE_CONNECTIONS
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.places.sink_progress import FILES_THEMSELVES, SinkProgress
from makewhole.model.points import PointKind, TablePoint
from makewhole.tables.progress import ProgressRows
from tests.world.files_lake import ORDERS, POSITIONED, FilesPlace, positioned, rows_of
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

WITH_TOPIC = POSITIONED.append(pa.field("t", pa.string()))
SHARED = replace(FILES_THEMSELVES, other_topics=("web-orders", "orders-retry"))
OF_WEB = replace(FILES_THEMSELVES, other_topics=("orders", "orders-retry"))
MADE = orders(range(3))


def point_of(place: FilesPlace, *, topic: str | None = None, has_position: bool = True) -> TablePoint:
    """Return the dataset, into which two topics lead, and the replay topic of one of them."""
    dataset = DatasetPlace(format="parquet", topic=topic)
    if has_position:
        dataset = replace(dataset, partition="p", offset="o")
    if topic is not None:
        dataset = replace(dataset, of_topics=("orders", "web-orders"), replay_topics=("orders-retry",))
    return TablePoint(
        name="lake", kind=PointKind.STORE, connection="lake", table=place.path, key=("id",), dataset=dataset
    )


def up_to(place: FilesPlace, point: TablePoint, progress: SinkProgress, topic: str = "orders") -> tuple[str, str]:
    """Return the least and the greatest offset up to which the first partition of a topic may be written."""
    connection = place.connection
    assert isinstance(connection, FILE_CONNECTIONS)
    rows = FileTables(connection).read_progress(point, progress, topic, [0])[0]
    least, greatest = str(rows.least), str(rows.greatest)
    number = 1 if least == greatest else 2
    assert rows == ProgressRows(rows=number, offsets=number, least=least, greatest=greatest)
    return least, greatest


def test_rows_of_other_topics_say_nothing_of_a_topic(place: FilesPlace) -> None:
    point = point_of(place, topic="t")
    for topic, first in {"orders": 97, "web-orders": 9097, "orders-retry": 7}.items():
        rows = [{**row, "t": topic} for row in positioned(MADE, first)]
        place.add(f"{topic}.parquet", rows, WITH_TOPIC)
    mixed = [{**row, "t": None} for row in positioned(MADE, 500)] + [
        {**row, "t": "orders"} for row in positioned(MADE[:1], 100)
    ]
    place.add("mixed.parquet", mixed, WITH_TOPIC)

    known = {topic: up_to(place, point, FILES_THEMSELVES, topic) for topic in ("orders", "web-orders", "orders-retry")}

    assert known == {"orders": ("100", "100"), "web-orders": ("9099", "9099"), "orders-retry": ("9", "9")}
    assert up_to(place, point, FILES_THEMSELVES, "mobile-orders") == ("-1", "-1")


def test_rows_that_do_not_say_their_topic_leave_it_open_how_far_a_topic_is_written(place: FilesPlace) -> None:
    point = point_of(place)
    place.add("a.parquet", positioned(MADE, 97), POSITIONED)
    place.add("b.parquet", positioned(MADE, 9097), POSITIONED)

    assert up_to(place, point, SHARED) == ("-1", "9099")
    assert up_to(place, point, FILES_THEMSELVES) == ("9099", "9099")


def test_names_say_how_far_each_topic_is_written(place: FilesPlace) -> None:
    point = point_of(place)
    place.add("orders+0+0000000097+0000000099.parquet", positioned(MADE, 97), POSITIONED)
    place.add("web-orders+0+0000009097+0000009099.parquet", positioned(MADE, 9097), POSITIONED)

    assert up_to(place, point, SHARED) == ("99", "99")
    assert up_to(place, point, OF_WEB, "web-orders") == ("9099", "9099")

    place.add("compacted.parquet", positioned(MADE, 197), POSITIONED)
    assert up_to(place, point, SHARED) == ("99", "199")


def test_a_name_that_is_none_of_the_topics_leaves_it_open_how_far_they_are_written(place: FilesPlace) -> None:
    place.add("dw_orders+0+0000000097+0000000099.parquet", positioned(MADE, 97), POSITIONED)
    assert up_to(place, point_of(place), SHARED) == ("-1", "99")


def test_names_alone_count_where_rows_have_no_positions(place: FilesPlace) -> None:
    place.add("orders+0+0000000097+0000000099.parquet", rows_of(MADE), ORDERS)
    assert up_to(place, point_of(place, has_position=False), SHARED) == ("99", "99")
