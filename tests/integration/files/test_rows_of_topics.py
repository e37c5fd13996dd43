"""Test that rows which a plan writes to files of several topics are among those of the point."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.write.forecast import FilesForecaster
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.model.points import TablePoint
from makewhole.model.window import WindowState
from makewhole.tables.items import UpsertRow
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import chunk_of, nothing, point_of
from tests.world.files_lake import ORDERS, POSITIONED, FilesPlace, positioned, row_of, rows_of
from tests.world.pipeline_file import flow
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NAMED = POSITIONED.append(pa.field("t", pa.string()))
PARTS = pa.struct([pa.field(name, kind) for name, kind in (("p", pa.int32()), ("o", pa.int64()), ("t", pa.string()))])
IN_ONE = ORDERS.append(pa.field("k", PARTS))

OTHER_TOPIC = "the row would not say that it is of a topic which leads into this dataset, and would be none of its rows"


def of_topics(place: FilesPlace, topic: str) -> TablePoint:
    """Return a point into which two topics lead, and whose rows say theirs."""
    return point_of(place, partition="p", offset="o", topic=topic, of_topics=("orders", "more"))


def missing(topic: str | None, number: int = 2, **fields: Any) -> UpsertRow:
    """Return what writes an order that is missing, and whose record says nothing of its topic."""
    row = {**MADE[number], **fields}
    return UpsertRow(
        seq=0,
        key=f"O{number}",
        key_columns=("id",),
        columns=tuple(row),
        value=json.dumps(row),
        before=(),
        left=("p", "o", "t", "k.p", "k.o", "k.t"),
        topic=topic,
    )


def found(place: FilesPlace, point: TablePoint, number: int = 2) -> list[str | None]:
    """Return the topics of the rows of a key that the point sees."""
    rows = FilesSession(connection=place.connection).open_table(point).rows_of_key(f"O{number}")
    return [json.loads(row.text).get("t") for row in rows]


def write(place: FilesPlace, point: TablePoint, item: UpsertRow) -> list[str]:
    """Write a row as the only one of a chunk; return why it was refused. The forecast says the same."""
    forecaster = FilesForecaster(connection=place.connection, point=point)
    forecast = forecaster.forecast_chunk(point, chunk_of(), [item], lambda _: [0])
    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), [item], nothing)
    assert forecast.refused == receipt.refused
    return [str(refusal) for refusal in receipt.refused.values()]


@pytest.mark.parametrize("topic", ["orders", "more"])
def test_a_row_that_was_written_is_seen_and_says_the_topic_of_its_hop(place: FilesPlace, topic: str) -> None:
    point = of_topics(place, "t")
    place.add("a.parquet", [{**row, "t": "others"} for row in positioned(MADE)], NAMED)
    assert found(place, point) == []
    assert write(place, point, missing(topic)) == []
    assert found(place, point) == [topic]


def test_a_row_goes_into_the_folder_of_its_topic(place: FilesPlace) -> None:
    point = of_topics(place, "t")
    place.add("t=orders/a.parquet", positioned(MADE[:2]), POSITIONED)
    place.add("t=more/a.parquet", positioned(MADE[5:]), POSITIONED)
    assert write(place, point, missing("more")) == []
    assert found(place, point) == ["more"]
    assert any(name.startswith("t=more/makewhole-") for name in place.names())


def test_a_row_that_would_say_no_topic_of_the_point_is_refused(place: FilesPlace) -> None:
    point = of_topics(place, "t")
    place.add("a.parquet", [{**row, "t": "orders"} for row in positioned(MADE[:2])], NAMED)
    before = place.rows()
    for item in (missing(None), missing("others"), missing("more", t="others")):
        assert write(place, point, item) == [f"unfit: {OTHER_TOPIC}"]
    assert place.rows() == before


def test_a_topic_that_is_a_part_of_a_column_is_not_written(place: FilesPlace) -> None:
    point = point_of(place, partition="k.p", offset="k.o", topic="k.t", of_topics=("orders",))
    rows = [{**row, "k": {"p": 0, "o": at, "t": "orders"}} for at, row in enumerate(rows_of(MADE[:2]))]
    place.add("a.parquet", rows, IN_ONE)
    assert write(place, point, missing("orders")) == ["unfit: k.t would be written, and parts of columns are not"]


@pytest.mark.parametrize("hop", [{"leave": "[t]"}, {}])
def test_a_missing_row_of_a_topic_is_written_once(shop: FilesShop, hop: Mapping[str, str]) -> None:
    """Its record has no field of the column with the topic."""
    position = "{partition: p, offset: o, topic: t}"
    shop.describe_files(compensation=ALL, has_key=False, topic_key="position", more={"position": position}, hop=hop)
    shop.send(MADE)
    loaded = [{**row, "t": shop.topic} for row in positioned(MADE)]
    shop.place.add("a.parquet", [*loaded[:2], *loaded[3:]], NAMED)
    shop.place.add("b.parquet", [{**row, "t": "others"} for row in positioned(MADE)], NAMED)
    before = shop.place.rows()

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {'["0","2"]': ("missing", "lost_after_topic")}
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {}
    assert [row for row in shop.place.rows() if row not in before] == [
        {**row_of(MADE[2]), "p": 0, "o": 2, "t": shop.topic}
    ]
    assert shop.close(context).state is WindowState.CERTIFIED

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.place.rows()) == ({}, before)


@pytest.mark.parametrize(
    ("columns", "where", "topic"),
    [
        ({"at_p": "k.p", "at_o": "k.o", "at_t": "k.t"}, "leave", "at_t"),
        ({"at_p": "k.p", "at_o": "k.o"}, "compensation.missing", "k.t"),
    ],
)
def test_check_refuses_to_write_rows_whose_topic_would_be_empty(
    shop: FilesShop, columns: Mapping[str, str], where: str, topic: str
) -> None:
    more = {"position": "{partition: k.p, offset: k.o, topic: k.t}", "columns": flow(columns)}
    shop.describe_files(compensation=ALL, more=more, hop={"leave": f"[{', '.join(columns)}]"})
    shop.place.add("a.parquet", [{**row, "k": {"p": 0, "o": 0, "t": shop.topic}} for row in rows_of(MADE[:1])], IN_ONE)

    result = CliRunner().invoke(app, ["check", "--tables", "--json", str(shop.file)], catch_exceptions=False)

    assert [(problem["path"], problem["found"]) for problem in json.loads(result.stdout)["problems"]] == [
        (
            f"hops {STORE_HOP}.{where}",
            f"{topic} of a row that 'upsert' writes into {shop.place.path} would have no topic, and the row be none of "
            "those of warehouse",
        )
    ]
