"""Test that what a runner decided and did not carry out is done later only where the rows are still as it saw them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.file_stores.local_store import LocalStore
from makewhole.model.errors import LeaseLostError, TransientError
from makewhole.tables.items import QuarantineRows, UpsertRow
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import (
    PLAN,
    KilledError,
    chunk_of,
    fill,
    items_of,
    nothing,
    point_of,
)
from tests.world.files_lake import FilesPlace, rows_of

pytestmark = pytest.mark.integration


@contextmanager
def dies_when_decided() -> Iterator[None]:
    """A runner dies when it has decided a chunk, before it changes a file."""
    with pytest.MonkeyPatch.context() as patch:
        decide = LocalStore.publish

        def died(self: LocalStore, path: str, content: bytes) -> bool:
            done = decide(self, path, content)
            if "/chunk." in path:
                raise KilledError
            return done

        patch.setattr(LocalStore, "publish", died)
        with pytest.raises(KilledError):
            yield


def test_a_file_that_another_writer_wrote_meanwhile_is_left_as_it_is(place: FilesPlace) -> None:
    """The chunk is decided, and its runner killed; a loader writes one of its files again."""
    point = point_of(place)
    fill(place)
    items = items_of(place, point)
    with dies_when_decided():
        FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)
    place.add("b.parquet", rows_of([MADE[4], {**MADE[5], "id": "O50"}]))

    writer = FilesWriter(connection=place.connection, point=point)
    [receipt] = writer.receipts(chunk_of(lease=2))

    text = "stale: the file of the row was written again, or removed, while the plan ran"
    assert {seq: str(refusal) for seq, refusal in receipt.refused.items()} == {2: text}
    assert receipt.actions == 2
    assert place.table("b.parquet").num_rows == 2
    assert [effect.seq for part in writer.effects(PLAN, "warehouse", 2) for effect in part] == [1, 0]


def test_what_was_decided_is_not_done_to_keys_that_have_other_rows_by_now(place: FilesPlace) -> None:
    """A loader writes the row that was to be inserted; a cleaner removes the survivor of the extra row: the next runner
    comes when the plan has long been ended."""
    point = point_of(place)
    fill(place)
    items = items_of(place, point)
    writer = FilesWriter(connection=place.connection, point=point)
    [inserted] = [item for item in items if isinstance(item, UpsertRow) and not item.before]
    [moved] = [item for item in items if isinstance(item, QuarantineRows)]
    with dies_when_decided():
        writer.write_chunk(point, chunk_of(), items, nothing)
    place.add("late.parquet", rows_of([row for row in MADE if row["id"] == inserted.key]))
    assert moved.survivor is not None
    place.store.remove(str(moved.survivor.place).rpartition(":")[0])
    before = place.rows()

    [receipt] = writer.receipts(chunk_of(lease=2))

    assert {str(refusal) for refusal in receipt.refused.values()} == {
        "stale: its key, or one that would be written into the same file, got other rows after a runner had decided "
        "this and was ended; run the window again"
    }
    assert {inserted.seq, moved.seq} <= set(receipt.refused)
    keys = [row["id"] for row in place.rows()]
    assert (keys.count(inserted.key), keys.count(moved.key)) == (1, [row["id"] for row in before].count(moved.key))
    assert not any("/staged." in name for name in place.names())
    assert writer.receipts(chunk_of(lease=3)) == [receipt]


def test_a_runner_that_wakes_does_not_do_what_the_next_one_found_to_be_in_vain(place: FilesPlace) -> None:
    """A loader writes the row while a runner stands still just before it puts a new file in place."""
    point = point_of(place)
    fill(place)
    [item] = [item for item in items_of(place, point) if isinstance(item, UpsertRow) and not item.before]
    slow, next_one = (FilesWriter(connection=place.connection, point=point) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        move = LocalStore.move

        def late(self: LocalStore, path: str, to: str, *, is_new: bool) -> bool:
            patch.undo()
            place.add("late.parquet", rows_of([row for row in MADE if row["id"] == item.key]))
            [receipt] = next_one.receipts(chunk_of(lease=2))
            assert set(receipt.refused) == {item.seq}
            return move(self, path, to, is_new=is_new)

        patch.setattr(LocalStore, "move", late)
        with suppress(TransientError, LeaseLostError):
            slow.write_chunk(point, chunk_of(), [item], nothing)
    assert [row["id"] for row in place.rows()].count(item.key) == 1


def test_what_lies_staged_no_more_is_in_vain_and_no_reason_to_try_for_ever(place: FilesPlace) -> None:
    point = point_of(place)
    fill(place)
    items, before = items_of(place, point), place.rows()
    writer = FilesWriter(connection=place.connection, point=point)
    with dies_when_decided():
        writer.write_chunk(point, chunk_of(), items, nothing)
    for name in place.names():
        if "/staged." in name:
            place.store.remove(name)
    [receipt] = writer.receipts(chunk_of(lease=2))
    assert (set(receipt.refused), place.rows()) == ({item.seq for item in items}, before)
