"""Test datasets whose files have other parts in a column: a part that a file lacks is null there, and none is lost."""

import json
from typing import Any

import pyarrow as pa
import pytest

from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.tables.items import QuarantineRows, RestoreRow, UpsertRow
from tests.integration.files.test_files_reading import read, shape_of
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import chunk_of, nothing, point_of
from tests.world.files_lake import ORDERS, FilesPlace, rows_of

pytestmark = pytest.mark.integration

WITHOUT, WITH = {"city": "Bonn"}, {"city": "Bonn", "zip": "53111"}


def fill(place: FilesPlace) -> None:
    """Write files of which the one in the middle has one part more; O1 is in it once more."""
    for name, rows, ship in (("a", MADE[:2], WITHOUT), ("b", MADE[1:3], WITH), ("c", MADE[3:4], WITHOUT)):
        parts: Any = pa.struct([(part, pa.string()) for part in ship])
        place.add(
            f"{name}.parquet", [{**row, "ship": ship} for row in rows_of(rows)], ORDERS.append(pa.field("ship", parts))
        )


def test_a_part_that_a_file_lacks_is_null_in_its_rows(place: FilesPlace) -> None:
    fill(place)
    rows = read(place, shape_of(place, compare={"ship.zip": "string"}, key=("ship.city", "id")))
    assert sorted(zip(rows["key"], rows["c:ship.zip"].fill_null("none"), strict=True)) == [
        ('["Bonn","O0"]', "none"),
        ('["Bonn","O1"]', "53111"),
        ('["Bonn","O1"]', "none"),
        ('["Bonn","O2"]', "53111"),
        ('["Bonn","O3"]', "none"),
    ]


def test_rows_of_such_files_are_changed_moved_aside_and_put_back_with_all_their_parts(place: FilesPlace) -> None:
    fill(place)
    point, before = point_of(place), place.rows()
    table = FilesSession(connection=place.connection).open_table(point)
    [row] = table.rows_of_key("O0")
    change = UpsertRow(
        seq=0, key="O0", key_columns=("id",), columns=("id", "amount"), value=json.dumps({"amount": 7}), before=(row,)
    )
    survivor, extra = table.rows_of_key("O1")
    aside = QuarantineRows(seq=1, key="O1", survivor=survivor, extras=(extra,))
    writer = FilesWriter(connection=place.connection, point=point)
    assert writer.write_chunk(point, chunk_of(), [change, aside], nothing).refused == {}

    effects = [effect for some in writer.effects(chunk_of().plan, "warehouse", 1) for effect in some]
    back = [
        RestoreRow(seq=seq, key=key, effect=effect)
        for seq, (key, effect) in enumerate(
            zip(("O0", "O1"), sorted(effects, key=lambda effect: effect.seq), strict=True)
        )
    ]
    assert writer.write_chunk(point, chunk_of(plan="undo-1-0123456789ab"), back, nothing).refused == {}

    assert sorted(str({**row, "ship": {**WITH, **row["ship"]}}) for row in place.rows()) == sorted(
        str({**row, "ship": {**WITH, **row["ship"]}}) for row in before
    )
    assert [row["ship"]["zip"] for row in place.rows() if row["ship"].get("zip")] == ["53111", "53111"]
