"""Test what a table in memory gives to those who read it, and keeps of chunks, without a window around it."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from makewhole.compute.normalise import table_frame
from makewhole.compute.row_filter import typed_term
from makewhole.config.connections import from_airflow_fields
from makewhole.kinds import tables_of
from makewhole.model.errors import ConfigurationError, CorruptionError, LeaseLostError, RefusedError, TransientError
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.window import TimeSlice
from makewhole.tables.items import RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.shape import EarlierRows, RowsAhead, TableShape, TimeBounds
from makewhole.tables.tables import Tables
from tests.integration.memory.memory_shop import ORDERS, change_rows, make_table, write_rows
from tests.memory.rows import Database
from tests.memory.server import MemoryServer
from tests.world.orders import BORN, DAY, Order, orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

POINT = TablePoint(name="warehouse", kind=PointKind.STORE, connection="db", table="warehouse", key=("id",), time="at")
SHAPE = TableShape(point=POINT, compare={"amount": "decimal(8,2)"}, filters={})
MADE = orders(range(6))


class Kept:
    """A table of orders in memory, its server, and what reads and writes it."""

    def __init__(self, server: MemoryServer) -> None:
        self.server, self.database = server, f"test_{uuid.uuid4().hex}"
        self.server.run(self.database, make_table, "warehouse", {**ORDERS, "version": "bigint", "note": "text"})

    @property
    def tables(self) -> Tables:
        """The tables, by a connection to the server."""
        return tables_of(from_airflow_fields("db", **self.server.fields(self.database)))

    def write(self, rows: Sequence[Order]) -> None:
        """Write rows as a loader does."""
        self.server.run(self.database, write_rows, "warehouse", rows)

    def change(self, key: str, **changed: Any) -> None:
        """Change rows as another writer does."""
        self.server.run(self.database, change_rows, "warehouse", key, changed)

    def read(self, shape: TableShape = SHAPE, bounds: TimeBounds | None = None) -> list[dict[str, Any]]:
        """Return the rows inside bounds, as windows have them."""
        with self.tables.hold_view(shape) as view:
            plan = view.plan(bounds, 3)
            reader = self.tables.reader(shape, plan.view)
            frames = [frame for part in plan.parts for frame in reader.part(bounds, part)]
        rows = [row for frame in frames for row in keys_frame(frame, shape).iter_rows(named=True)]
        assert reader.counted == len(rows)
        return sorted(rows, key=lambda row: str(row["place"]))

    def keys(self, bounds: TimeBounds) -> list[str]:
        """Return the keys of the rows inside bounds."""
        return [str(row["key"]) for row in self.read(bounds=bounds)]

    def chunk(self, *items: RowItem, number: int = 0, epoch: int = 1, sha256: str = "0" * 64) -> ReceiptRow:
        """Write a chunk of a plan."""
        chunk = ChunkId(plan="shop-1-0", plan_sha256=sha256, target="warehouse", chunk=number, lease_epoch=epoch)
        with self.tables.writer(POINT, "a test") as writer:
            return writer.write_chunk(POINT, chunk, items, lambda *_: {})

    def ids(self) -> list[str | None]:
        """Return the keys of all rows, in the order in which they came."""
        return self.server.run(
            self.database, lambda kept: [row.values["id"] for row in kept.tables["warehouse"].rows.values()]
        )


def keys_frame(frame: pl.DataFrame, shape: TableShape) -> pl.DataFrame:
    """Return the rows of a frame; each has a key."""
    good, bad = table_frame(frame, dict(shape.compare))
    assert bad.is_empty()
    return good


@pytest.fixture
def kept(installed: None, memory: MemoryServer) -> Kept:
    """An empty table of the test's own."""
    return Kept(memory)


def missing(seq: int, order: Order, **changed: Any) -> UpsertRow:
    """Return an item that inserts an order; `changed` is what its value has otherwise."""
    return UpsertRow(
        seq=seq,
        key=order["id"],
        key_columns=("id",),
        value=json.dumps({**order, **changed}),
        columns=tuple(ORDERS),
        before=(),
        expected=(("amount", "decimal(8,2)", order["amount"]),),
        left=("version", "note"),
    )


# Reading


def test_rows_have_canonical_values_versions_times_and_the_filters_that_they_do_not_pass(kept: Kept) -> None:
    kept.write([{**MADE[1], "version": 7, "note": "12"}, {**MADE[2], "note": "a dozen"}])
    shape = TableShape(
        point=replace(POINT, version="version"),
        compare={"amount": "decimal(8,2)", "note": "int", "at": "timestamp"},
        filters={"to us": (typed_term("region", "US"),), "to one": (typed_term("number", 1, "int"),)},
    )
    first, second = kept.read(shape)
    moments = [BORN + timedelta(minutes=number) for number in (1, 2)]
    assert (first["key"], first["place"], first["time"], first["excluded_by"]) == ("O1", "(1,1)", moments[0], [])
    assert (second["key"], second["place"], second["time"]) == ("O2", "(2,1)", moments[1])
    assert second["excluded_by"] == ["to us", "to one"]
    assert (first["version"], second["version"]) == (7, None)
    assert (first["c:amount"], first["c:note"]) == ("1.50", "12")
    assert (second["c:amount"], second["c:note"]) == ("2.50", "!'a dozen'")
    assert first["c:at"] == str(int(moments[0].timestamp()) * 1_000_000)


def test_a_view_that_is_held_has_the_rows_as_they_were(kept: Kept) -> None:
    kept.write(MADE[:2])
    with kept.tables.hold_view(SHAPE) as view:
        kept.write(MADE[2:3])
        kept.change("O0", amount="9.00")
        then, now = (kept.tables.reader(SHAPE, name) for name in (view.plan(None, 1).view, None))
        read = [
            {row["key"]: row["c:amount"] for frame in reader.keys(["O0", "O2", "O9"]) for row in frame.rows(named=True)}
            for reader in (then, now)
        ]
        assert read == [{"O0": "0.50"}, {"O0": "9.00", "O2": "2.50"}]
        assert (then.counted, now.counted) == (1, 2)
        of = TimeSlice(window=1, start=BORN, end=BORN + DAY)
        assert (view.count_rows([of]), view.count_new_rows(of, "1"), view.count_new_rows(of, "2")) == ({1: 2}, 1, 0)
    with kept.tables.hold_view(SHAPE) as view:
        assert (view.count_rows([of]), view.count_new_rows(of, "2"), view.count_new_rows(of, "3")) == ({1: 3}, 2, 1)
    with pytest.raises(TransientError, match="view 1 of warehouse is gone; read again"):
        list(then.keys(["O0"]))


def test_of_rows_before_the_window_those_are_read_that_came_or_changed_since(kept: Kept) -> None:
    day = [orders([number], number)[0] for number in range(3)]
    kept.write([*day, {**MADE[5], "at": None}])
    with kept.tables.hold_view(SHAPE) as view:
        seen = view.seen
    kept.write([{**day[0], "id": "late"}, {**MADE[4], "at": None, "id": "undated"}])
    kept.change("O1", amount="9.00")
    start, end = BORN + 2 * DAY, BORN + 3 * DAY
    since = EarlierRows(start=BORN, end=start, seen_before=seen)

    assert kept.keys(TimeBounds(start=None, end=start)) == ["O0", "O1", "O5", "late", "undated"]
    assert kept.keys(TimeBounds(start=start, end=end)) == ["O2", "O5", "undated"]
    assert kept.keys(TimeBounds(start=start, end=end, seen_before=seen)) == ["O2", "undated"]
    bounds = TimeBounds(start=start, end=end, seen_before=seen, earlier=(since,))
    assert kept.keys(bounds) == ["O1", "O2", "late", "undated"]
    every = replace(bounds, earlier=(replace(since, start=None, seen_before=None),))
    assert kept.keys(every) == ["O0", "O1", "O2", "late", "undated"]
    assert kept.tables.estimate_rows(POINT, bounds) == 4


def test_rows_ahead_of_the_clock_are_counted(kept: Kept) -> None:
    ahead = (datetime.now(UTC) + timedelta(days=30)).replace(microsecond=0)
    kept.write([*MADE[:2], {**MADE[2], "at": ahead.isoformat()}])
    with kept.tables.hold_view(SHAPE) as view:
        text = ahead.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        assert view.count_rows_and_ahead([]) == ({}, RowsAhead(rows=1, oldest=text, newest=text, infinite=0))


def test_rows_of_a_key_are_in_order_of_time_or_the_latest_version_first(kept: Kept) -> None:
    rows = [(3, 1), (1, 2), (None, 3), (2, None), (1, 1)]
    kept.write(
        [
            {**orders([0], day or 0)[0], "at": None, "version": version}
            | ({} if day is None else {"at": orders([0], day)[0]["at"]})
            for day, version in rows
        ]
    )
    with kept.tables.session("a test") as session:
        table = session.open_table(replace(POINT, version="version"))
        assert [row.ctid for row in table.rows_of_key("O0")] == ["(2,1)", "(5,1)", "(4,1)", "(1,1)", "(3,1)"]
        latest = table.rows_of_key("O0", is_latest_first=True)
        assert [row.ctid for row in latest] == ["(3,1)", "(2,1)", "(1,1)", "(5,1)", "(4,1)"]
        assert table.valued_rows_of_many({"amount": "decimal(8,2)"}, ["O9"]) == {}


def test_an_equal_key_in_another_spelling_is_found_where_a_key_has_to_be_free(kept: Kept) -> None:
    kept.write(MADE[:2])
    with kept.tables.session("a test") as session:
        table = session.open_table(replace(POINT, key=("number",)))
        assert [len(table.rows_of_key(key)) for key in ("1", "1.0")] == [1, 0]
        assert [len(table.rows_of_key(key, is_exact=False)) for key in ("1", "1.0", "7")] == [1, 1, 0]
        with pytest.raises(
            RefusedError, match=r"^unfit: the key columns of warehouse \(number bigint\) cannot hold it$"
        ):
            table.rows_of_key("one")


# Chunks


def test_each_item_of_a_chunk_is_done_or_refused_by_itself(kept: Kept) -> None:
    kept.write(MADE[2:3])
    receipt = kept.chunk(
        missing(0, MADE[0]),
        missing(1, MADE[1], number="many"),
        missing(2, MADE[2]),
        missing(3, MADE[3], amount="4.00"),
        missing(4, MADE[4], id="O9"),
        replace(missing(5, MADE[5]), left=("note",)),
    )
    assert receipt.actions == 1
    assert {seq: str(refusal) for seq, refusal in receipt.refused.items()} == {
        1: "unfit: the table does not take it: number (bigint) does not hold this value",
        2: "arrived: a row of this key appeared after the plan was made",
        3: "unfit: written to this table, amount would not hold what the record is compared by (the type of the "
        "column, a trigger or a generated column makes another value of it)",
        4: "unfit: written to this table, the record's value has another key than its own",
        5: "stale: nothing says what version of a new row holds, and the table changed since the plan was made; "
        "account for it in the pipeline file (`write`, `leave`), and open a new revision of the window",
    }
    assert kept.ids() == ["O2", "O0"]


def test_a_chunk_that_has_a_receipt_is_left_as_it_is(kept: Kept) -> None:
    first = kept.chunk(missing(0, MADE[0]))
    assert kept.chunk(missing(0, MADE[1]), epoch=2) == first
    assert kept.chunk(missing(1, MADE[1]), number=1, epoch=2).actions == 1
    assert kept.ids() == ["O0", "O1"]


def test_leases_holes_and_other_plans_stop_a_runner_before_it_writes(kept: Kept) -> None:
    kept.chunk(missing(0, MADE[0]), epoch=5)
    with pytest.raises(LeaseLostError, match="a newer runner has been at warehouse"):
        kept.chunk(missing(1, MADE[1]), number=1, epoch=4)
    with pytest.raises(CorruptionError, match="warehouse has 1 receipts, and not 2"):
        kept.chunk(missing(1, MADE[1]), number=2, epoch=5)
    with pytest.raises(CorruptionError, match="the receipts of plan shop-1-0 at warehouse do not fit the plan"):
        kept.chunk(missing(1, MADE[1]), number=1, epoch=5, sha256="1" * 64)
    assert kept.ids() == ["O0"]


def test_effects_that_are_missing_are_refused(kept: Kept) -> None:
    kept.chunk(missing(0, MADE[0]), missing(1, MADE[1]))
    with kept.tables.writer(POINT, "a test") as writer:
        (effects,) = writer.effects("shop-1-0", "warehouse", 1)
        assert [effect.seq for effect in effects] == [1, 0]
        kept.server.run(kept.database, lambda database: database.effects.pop())
        with pytest.raises(RefusedError, match="chunk 0 of plan shop-1-0 at warehouse has effects of 1 actions"):
            list(writer.effects("shop-1-0", "warehouse", 1))


# The server


def insert_and_fail(database: Database) -> None:
    """Write a row, and raise."""
    write_rows(database, "warehouse", MADE[:1])
    raise RefusedError("no")


def test_a_request_that_raises_leaves_nothing(kept: Kept) -> None:
    with pytest.raises(RefusedError, match=r"^no$"):
        kept.server.run(kept.database, insert_and_fail)
    assert kept.ids() == []


def test_a_server_that_does_not_answer_is_a_transient_error(installed: None) -> None:
    with MemoryServer() as server:
        fields = server.fields("test")
        wrong = tables_of(from_airflow_fields("db", **{**fields, "password": "another"}))
        with pytest.raises(TransientError, match="the server of connection db does not answer"):
            wrong.estimate_rows(POINT, None)
        right = tables_of(from_airflow_fields("db", **fields))
        with pytest.raises(ConfigurationError, match="table warehouse does not exist"):
            right.estimate_rows(POINT, None)
    with pytest.raises(TransientError, match="the server of connection db does not answer"):
        right.estimate_rows(POINT, None)
