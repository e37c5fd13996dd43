"""Test that rows which a plan wrote to files of several schemas are known again when they are taken back."""

import json
from typing import Any

import pyarrow as pa
import pytest

from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from tests.integration.files.test_files_writer import chunk_of, nothing, point_of
from tests.world.files_lake import FilesPlace

pytestmark = pytest.mark.integration

_COLUMNS: list["pa.Field[Any]"] = [pa.field("id", pa.string()), pa.field("v", pa.int64())]
NEWER = pa.schema(_COLUMNS)
OLDER = NEWER.append(pa.field("old", pa.string()))


def test_a_row_is_taken_back_where_the_newest_file_lacks_a_column_and_folders_are_columns(place: FilesPlace) -> None:
    """The columns have another order in the file of the row than in the dataset."""
    place.add("dt=d1/a.parquet", [{"id": f"O{at}", "v": at, "old": "x"} for at in (0, 3, 3)], OLDER)
    place.add("dt=d0/b.parquet", [{"id": "O1", "v": 1}], NEWER)
    point, before = point_of(place), place.rows()
    survivor, extra = FilesSession(connection=place.connection).open_table(point).rows_of_key("O3")
    items: list[RowItem] = [
        UpsertRow(
            seq=0,
            key="O2",
            key_columns=("id",),
            columns=("id", "v", "dt"),
            value=json.dumps({"v": 2, "dt": "d1"}),
            before=(),
            left=("old",),
        ),
        QuarantineRows(seq=1, key="O3", survivor=survivor, extras=(extra,)),
    ]
    writer = FilesWriter(connection=place.connection, point=point)
    assert writer.write_chunk(point, chunk_of(), items, nothing).refused == {}
    effects = [effect for part in writer.effects(chunk_of().plan, "warehouse", 1) for effect in part]

    undo = [RestoreRow(seq=at, key=items[effect.seq].key, effect=effect) for at, effect in enumerate(effects)]
    receipt = writer.write_chunk(point, chunk_of(plan=f"{chunk_of().plan}-u"), undo, nothing)

    assert (receipt.actions, dict(receipt.refused)) == (2, {})
    assert place.rows() == before
