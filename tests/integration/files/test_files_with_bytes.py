"""Test that a text whose bytes are no UTF-8 makes the rows beside it unreadable, and nothing else."""

import pytest

from makewhole.datasets.files.reading import FilesReader
from tests.integration.datasets.test_texts_of_bytes import content, keys
from tests.integration.files.test_files_reading import held, shape_of
from tests.world.files_lake import FilesPlace

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize(("column", "in_doubt"), [("id", {"O0", "O3"}), ("tags", {"O3"})])
def test_rows_of_files_beside_such_a_text_are_not_known(
    place: FilesPlace, column: str, in_doubt: set[str], has_statistics: bool
) -> None:
    place.store.publish("a.parquet", content(column, has_statistics=has_statistics))
    shape = shape_of(place, compare={"tags": "string"})

    reader = FilesReader(place.connection, shape, None)
    assert keys(reader) == ["O0"]
    assert [doubt.keys for doubt in reader.in_doubt] == [frozenset(in_doubt)]

    plan = held(place, shape).plan(None, 1)
    reader = FilesReader(place.connection, shape, plan.view)
    assert [key for frame in reader.part(None, plan.parts[0]) for key in frame["key"]] == ["O0", "O1"]
    assert [file.is_spoilt for file in reader.unreadable] == [True]
