"""Test that a chunk of a plan on files happens once, wherever its runner is killed, and whoever goes on with it."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.write.commit_files import MARKED
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.file_stores.local_store import LocalStore
from makewhole.model.errors import LeaseLostError, RefusedError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.refusal import Refusal
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId, KeptAtTarget
from tests.integration.files.test_files_windows import MADE
from tests.world.files_lake import ORDERS, FilesPlace, row_of, rows_of

pytestmark = pytest.mark.integration

_WRITING = ("publish", "replace", "move", "remove")
PLAN = "shop-1-0123456789ab"


class KilledError(BaseException):
    """The runner is killed."""


@contextmanager
def killed(at: int, *, is_done: bool) -> Iterator[list[str]]:
    """Kill the runner at its nth writing call, before it or once it is done; yield the calls that it made."""
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in _WRITING:
            patch.setattr(LocalStore, name, _killing(getattr(LocalStore, name), calls, at, is_done=is_done))
        yield calls


def _killing(call: Any, calls: list[str], at: int, *, is_done: bool) -> Any:
    def do(self: LocalStore, path: str, *more: bytes | str, **options: bool) -> Any:
        calls.append(path)
        if len(calls) == at and not is_done:
            raise KilledError
        done = call(self, path, *more, **options)
        if len(calls) == at:
            raise KilledError
        return done

    return do


def point_of(place: FilesPlace, **settings: Any) -> TablePoint:
    """Return the dataset of a place as a point."""
    dataset = DatasetPlace(format="parquet", **settings)
    return TablePoint(
        name="warehouse", kind=PointKind.STORE, connection="lake", table=place.path, key=("id",), dataset=dataset
    )


def chunk_of(number: int = 0, lease: int = 1, plan: str = PLAN) -> ChunkId:
    """Return the identity of a chunk."""
    return ChunkId(plan=plan, plan_sha256="a" * 64, target="warehouse", chunk=number, lease_epoch=lease)


def nothing(*_: Any) -> Mapping[int, Refusal]:
    """Refuse nothing."""
    return {}


def fill(place: FilesPlace) -> None:
    """Write files in which O2 is missing, O4 is there twice and O6 has another amount."""
    rows = rows_of([*MADE[:2], *MADE[3:6], {**MADE[6], "amount": "1.00"}, *MADE[7:]])
    place.add("a.parquet", rows, row_group_size=4)
    place.add("b.parquet", rows_of([MADE[4]]))


def items_of(place: FilesPlace, point: TablePoint) -> list[RowItem]:
    """Return what repairs these files."""
    table = FilesSession(connection=place.connection).open_table(point)
    columns = tuple(MADE[0])
    written = [
        UpsertRow(
            seq=seq,
            key=f"O{number}",
            key_columns=("id",),
            columns=columns,
            value=json.dumps(MADE[number]),
            before=tuple(table.rows_of_key(f"O{number}")),
        )
        for seq, number in enumerate((2, 6))
    ]
    survivor, extra = table.rows_of_key("O4")
    return [*written, QuarantineRows(seq=2, key="O4", survivor=survivor, extras=(extra,))]


def test_a_chunk_happens_once_wherever_its_runner_is_killed(place: FilesPlace) -> None:
    point, right = point_of(place), sorted(rows_of(MADE), key=str)
    at, was_killed = 0, True
    while was_killed:
        at += 1
        for is_done in (False, True):
            for name in place.names():
                place.store.remove(name)
            fill(place)
            items, wrong = items_of(place, point), place.rows()
            was_killed = False
            with killed(at, is_done=is_done):
                try:
                    FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)
                except KilledError:
                    was_killed = True
            rows = place.rows()
            assert all(row in [*right, *wrong] for row in rows)
            assert len(rows) in range(len(wrong) - 1, len(wrong) + 2)

            writer = FilesWriter(connection=place.connection, point=point)
            known = writer.receipts(chunk_of(lease=2))
            receipt = writer.write_chunk(point, chunk_of(lease=2), items, nothing)
            assert known in ([], [receipt])
            assert not any("/staged." in name for name in place.names()), "rows of keys that no plan names, too"
            assert (receipt.actions, dict(receipt.refused)) == (3, {})
            assert place.rows() == right
            assert [effect.seq for part in writer.effects(PLAN, "warehouse", 2) for effect in part] == [2, 1, 0]
    assert at > 8, "leases, two staged files and more, a decision, three files, a receipt"


def test_a_runner_with_an_earlier_lease_writes_no_more(place: FilesPlace) -> None:
    point = point_of(place)
    fill(place)
    items, before = items_of(place, point), place.rows()
    writer = FilesWriter(connection=place.connection, point=point)
    assert writer.receipts(chunk_of(lease=5)) == []
    with pytest.raises(LeaseLostError):
        writer.write_chunk(point, chunk_of(lease=4), items, nothing)
    assert place.rows() == before


def test_what_a_runner_decided_is_carried_out_by_the_next_one_or_by_none(place: FilesPlace) -> None:
    """A runner decides, is overtaken before it changes a file, and goes on later: it stops there."""
    point = point_of(place)
    fill(place)
    items = items_of(place, point)
    slow, next_one = (FilesWriter(connection=place.connection, point=point) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        decide = LocalStore.publish

        def overtaken(self: LocalStore, path: str, content: bytes) -> bool:
            done = decide(self, path, content)
            if "/chunk." in path and "000000000001" in path:
                next_one.receipts(chunk_of(lease=2))
            return done

        patch.setattr(LocalStore, "publish", overtaken)
        with pytest.raises(LeaseLostError):
            slow.write_chunk(point, chunk_of(), items, nothing)
    assert place.rows() == sorted(rows_of(MADE), key=str)
    assert next_one.receipts(chunk_of(lease=2))[0].actions == 3


def test_what_a_runner_decides_after_the_next_one_has_looked_is_void(place: FilesPlace) -> None:
    """A runner is stopped before it decides; the plan may be over by the time that it does."""
    point = point_of(place)
    fill(place)
    items, before = items_of(place, point), place.rows()
    slow, next_one = (FilesWriter(connection=place.connection, point=point) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        decide = LocalStore.publish

        def late(self: LocalStore, path: str, content: bytes) -> bool:
            if "/chunk." in path:
                assert next_one.receipts(chunk_of(lease=2)) == []
            return decide(self, path, content)

        patch.setattr(LocalStore, "publish", late)
        with pytest.raises(LeaseLostError):
            slow.write_chunk(point, chunk_of(), items, nothing)
    assert any("/chunk.000000.000000000001" in name for name in place.names())
    assert next_one.receipts(chunk_of(lease=3)) == []
    assert place.rows() == before
    assert next_one.write_chunk(point, chunk_of(lease=3), items, nothing).actions == 3
    assert place.rows() == sorted(rows_of(MADE), key=str)
    assert [effect.seq for part in next_one.effects(PLAN, "warehouse", 3) for effect in part] == [2, 1, 0]


def test_a_staged_file_is_not_put_back_by_a_runner_that_wakes_later(place: FilesPlace) -> None:
    """A runner stands still just before it puts a file there; the next one does it, and a later chunk changes it."""
    point = point_of(place)
    fill(place)
    items = items_of(place, point)
    slow, next_one = (FilesWriter(connection=place.connection, point=point) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        move = LocalStore.move

        def late(self: LocalStore, path: str, to: str, *, is_new: bool) -> bool:
            if not is_new:
                patch.undo()
                next_one.receipts(chunk_of(lease=2))
                table = FilesSession(connection=place.connection).open_table(point)
                (row,) = table.rows_of_key("O6")
                extra = QuarantineRows(seq=9, key="O6", survivor=None, extras=(row,))
                assert next_one.write_chunk(point, chunk_of(1, lease=2), [extra], nothing).actions == 1
            return move(self, path, to, is_new=is_new)

        patch.setattr(LocalStore, "move", late)
        receipt = slow.write_chunk(point, chunk_of(), items, nothing)
    assert receipt.actions == 3
    assert place.rows() == sorted(rows_of([*MADE[:6], *MADE[7:]]), key=str)


def test_rows_that_were_put_back_are_not_put_back_again(place: FilesPlace) -> None:
    point = point_of(place)
    fill(place)
    before = place.rows()
    writer = FilesWriter(connection=place.connection, point=point)
    writer.write_chunk(point, chunk_of(), items_of(place, point), nothing)
    effects = [effect for part in writer.effects(PLAN, "warehouse", 1) for effect in part]
    keys = {0: "O2", 1: "O6", 2: "O4"}
    undo = [RestoreRow(seq=at, key=keys[effect.seq], effect=effect) for at, effect in enumerate(effects)]

    first = writer.write_chunk(point, chunk_of(plan=f"{PLAN}-u"), undo, nothing)
    assert (first.actions, dict(first.refused)) == (3, {})
    assert place.rows() == before
    assert not [name for name in place.names() if name.startswith(f"makewhole-{PLAN}-000000")]

    second = writer.write_chunk(point, chunk_of(plan=f"{PLAN}-v"), undo, nothing)
    assert {seq: str(refusal) for seq, refusal in second.refused.items()} == {
        0: "stale: the row was put back already",
        1: "stale: the row was changed after the plan wrote it",
        2: "erased: the row that the plan wrote is gone",
    }
    assert place.rows() == before


def test_files_that_count_by_a_marker_are_not_written_again(place: FilesPlace) -> None:
    """What is missing comes in a file beside them, with a marker of its own."""
    point = point_of(place, marker="_SUCCESS")
    fill(place)
    place.store.publish("_SUCCESS", b"")
    before = {name: place.content(name) for name in place.names()}
    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(
        point, chunk_of(), items_of(place, point), nothing
    )
    assert set(receipt.refused.values()) == {MARKED}
    assert {name: place.content(name) for name in before} == before
    added = [name for name in place.names() if name not in before and not name.startswith("_makewhole/")]
    assert sorted(name.rpartition("/")[2] for name in added)[0] == "_SUCCESS"
    assert (receipt.actions, len(added)) == (1, 2)


def test_every_other_row_and_column_of_a_file_stays_as_it_was(place: FilesPlace) -> None:
    point = point_of(place)
    rows = [{**row_of(order), "number": None if order["id"] == "O8" else order["number"]} for order in MADE]
    place.add("a.parquet", [*rows, rows[4]], compression="zstd", row_group_size=5)
    table = FilesSession(connection=place.connection).open_table(point)
    survivor, extra = table.rows_of_key("O4")
    item = QuarantineRows(seq=0, key="O4", survivor=survivor, extras=(extra,))
    before = place.table("a.parquet")
    FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), [item], nothing)
    after = place.table("a.parquet")
    assert after.equals(before.slice(0, 12))
    assert after.schema.equals(before.schema)


def test_a_file_with_numbers_that_are_none_is_written_again(place: FilesPlace) -> None:
    """To Arrow NaN is never what it was, alone or in a list of parts."""
    score, parts = pa.field("score", pa.float64()), pa.field("parts", pa.list_(pa.struct([("share", pa.float32())])))
    nan = float("nan")
    rows = [{**row_of(order), "score": nan, "parts": [{"share": nan}, {"share": 0.5}]} for order in MADE]
    place.add("a.parquet", [*rows, rows[4]], ORDERS.append(score).append(parts))
    point, before = point_of(place), place.table("a.parquet")
    survivor, extra = FilesSession(connection=place.connection).open_table(point).rows_of_key("O4")
    item = QuarantineRows(seq=0, key="O4", survivor=survivor, extras=(extra,))

    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), [item], nothing)

    assert (receipt.actions, receipt.refused) == (1, {})
    assert str(place.table("a.parquet").to_pylist()) == str(before.slice(0, len(MADE)).to_pylist())


def test_moments_are_written_in_the_form_that_the_files_of_the_dataset_have(place: FilesPlace) -> None:
    """Spark and Hive write them as INT96 by their older settings, and refuse nanoseconds in another form."""
    point, naive = point_of(place), ORDERS.set(4, pa.field("at", pa.timestamp("us")))
    rows = [{**row, "at": row["at"].replace(tzinfo=None)} for row in rows_of([*MADE[:2], *MADE[3:7], MADE[4]])]
    rows[5]["amount"] = Decimal("1.00")
    for name, some in (("a.parquet", rows[:6]), ("b.parquet", rows[6:])):
        place.add(name, some, naive, use_deprecated_int96_timestamps=True)

    FilesWriter(connection=place.connection, point=point).write_chunk(
        point, chunk_of(), items_of(place, point), nothing
    )

    names = [name for name in place.names() if not name.startswith("_")]
    schemas = [pq.ParquetFile(io.BytesIO(place.content(name))).schema for name in names]
    assert {schema.column(4).physical_type for schema in schemas} == {"INT96"}
    moments = {row["id"]: row["at"].replace(tzinfo=UTC) for row in place.rows()}
    assert moments == {row["id"]: row["at"] for row in rows_of(MADE[:7])}


def test_what_an_ended_plan_did_is_removed_leases_last_and_again_after_a_kill(place: FilesPlace) -> None:
    point = point_of(place)
    fill(place)
    writer = FilesWriter(connection=place.connection, point=point)
    items = items_of(place, point)
    writer.write_chunk(point, chunk_of(), items, nothing)
    writer.write_chunk(point, chunk_of(plan=f"{PLAN}-other"), items[:1], nothing)
    rows, names = place.rows(), place.names()
    assert writer.kept(PLAN, "warehouse") == KeptAtTarget(effects=3, aside=1, waiting=1)
    with pytest.raises(LeaseLostError):
        writer.forget(PLAN, "warehouse", 0, only_rows_aside=False)
    writer.forget(PLAN, "warehouse", 1, only_rows_aside=True)
    assert place.names() == names
    with pytest.raises(KilledError), killed(3, is_done=True):
        writer.forget(PLAN, "warehouse", 2, only_rows_aside=False)
    left = [name.rsplit("/", 1)[-1] for name in place.names() if f"/{PLAN}.warehouse/" in f"/{name}"]
    assert left == ["lease.000000000001", "lease.000000000002"]

    writer.forget(PLAN, "warehouse", 2, only_rows_aside=False)

    assert [name for name in place.names() if f"/{PLAN}.warehouse/" in f"/{name}"] == []
    assert [name for name in place.names() if f"/{PLAN}-other.warehouse/" in f"/{name}"] != []
    assert place.rows() == rows


def test_actions_of_a_key_are_erased_from_what_a_plan_did_and_others_stay(place: FilesPlace) -> None:
    point = point_of(place)
    fill(place)
    writer = FilesWriter(connection=place.connection, point=point)
    items = items_of(place, point)
    writer.write_chunk(point, chunk_of(), items, nothing)
    rows = place.rows()
    done = [effect for part in writer.effects(PLAN, "warehouse", 1) for effect in part]
    gone = done[0].seq
    kept = [name for name in place.names() if name.startswith("_makewhole/") and "chunk." in name]
    with pytest.raises(LeaseLostError):
        writer.erase("warehouse", 0, PLAN, {PLAN: frozenset({gone})})

    erased = writer.erase("warehouse", 2, PLAN, {PLAN: frozenset({gone}), "other": frozenset({1})})

    assert erased == len([effect for effect in done if effect.seq == gone])
    images = [image for effect in done if effect.seq == gone for image in (effect.before, effect.after) if image]
    assert images
    assert not any(json.dumps(image).encode() in place.content(name) for name in kept for image in images)
    with pytest.raises(RefusedError, match="lacks its effects"):
        list(writer.effects(PLAN, "warehouse", 2))
    assert place.rows() == rows
    assert writer.erase("warehouse", 2, PLAN, {PLAN: frozenset({gone})}) == 0
