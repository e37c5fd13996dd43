"""Test that chunks and listings pass in a folder into which others write all the time, and see what concerns them."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from makewhole.datasets.files.listing import listing_now
from makewhole.datasets.files.write.kept_beside import FileStep
from makewhole.datasets.files.write.staging import Staging
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.model.errors import TransientError
from makewhole.model.places.dataset_place import MANIFESTS
from makewhole.tables.receipts import ReceiptRow
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import chunk_of, fill, items_of, nothing, point_of
from tests.world.files_lake import ORDERS, FilesPlace, rows_of

pytestmark = pytest.mark.integration

OTHERS = rows_of([{**MADE[7], "id": f"O{number}"} for number in range(70, 75)])
RIGHT = sorted(rows_of(MADE), key=str)


def written_while(place: FilesPlace, happens: Callable[[], None]) -> ReceiptRow:
    """Repair the files of `fill`; something happens between the look at rows and the decision."""
    point = point_of(place)
    whole = Staging.steps

    def meanwhile(self: Staging) -> list[FileStep]:
        steps = list(whole(self))
        happens()
        return steps

    items = items_of(place, point)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "steps", meanwhile)
        return FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)


def test_files_of_other_keys_come_go_and_are_written_again(place: FilesPlace) -> None:
    fill(place)
    for name in ("gone.parquet", "again.parquet"):
        place.add(name, OTHERS[:1])

    def happens() -> None:
        place.add("new.parquet", OTHERS[1:2])
        place.add("again.parquet", OTHERS[2:5])
        place.store.remove("gone.parquet")

    receipt = written_while(place, happens)

    assert not receipt.refused
    assert place.rows() == sorted([*RIGHT, *OTHERS[1:]], key=str)


def comes_late(place: FilesPlace) -> None:
    """The loader brings the order that is missing."""
    place.add("late.parquet", rows_of([MADE[2], {**MADE[7], "id": "O70"}]))


def is_compacted(place: FilesPlace) -> None:
    """The file with the row that is there twice becomes a part of another one."""
    place.add("compacted.parquet", [*rows_of([MADE[4]]), *OTHERS])
    place.store.remove("b.parquet")


def goes(place: FilesPlace) -> None:
    """The file with the row that is there twice is removed."""
    place.store.remove("b.parquet")


def is_written_again(place: FilesPlace) -> None:
    """The same file has one more row."""
    place.add("b.parquet", [*rows_of([MADE[4]]), *OTHERS])


def has_another_column(place: FilesPlace) -> None:
    """A newer file has a column that the others lack."""
    schema = ORDERS.append(pa.field("more", pa.int64()))
    place.add("new.parquet", [{**row, "more": 1} for row in OTHERS], schema)


@pytest.mark.parametrize("happens", [comes_late, is_compacted, goes, is_written_again, has_another_column])
def test_what_concerns_the_keys_of_a_chunk_has_it_tried_again(
    place: FilesPlace, happens: Callable[[FilesPlace], None]
) -> None:
    fill(place)
    before: list[Any] = []

    def once() -> None:
        happens(place)
        before[:] = place.rows()

    with pytest.raises(TransientError, match=r"with rows of its keys came or went .* or brought other columns"):
        written_while(place, once)

    assert place.rows() == before


def test_hidden_files_may_change_all_the_time(place: FilesPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    whole, number = type(place.store).list, iter(range(100))

    def changing(self: Any, folder: str = "") -> Any:
        place.store.replace(f"_temporary/{next(number)}.parquet", b"a part")
        place.store.replace(".b.parquet.inprogress", b"more" * next(number))
        return whole(self, folder)

    monkeypatch.setattr(type(place.store), "list", changing)
    assert [data.path for data in listing_now(place.store).files] == ["a.parquet"]


@pytest.mark.parametrize(("marker", "commit"), [("_SUCCESS", "_SUCCESS"), (MANIFESTS, "_manifest-1.json")])
def test_what_commits_files_may_not_change_while_they_are_listed(
    place: FilesPlace, monkeypatch: pytest.MonkeyPatch, marker: str, commit: str
) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    whole, number = type(place.store).list, iter(range(100))

    def changing(self: Any, folder: str = "") -> Any:
        place.store.replace(commit, b"[]" + b" " * next(number))
        return whole(self, folder)

    monkeypatch.setattr(type(place.store), "list", changing)
    with pytest.raises(TransientError, match="changed each of 8 times"):
        listing_now(place.store, marker)
