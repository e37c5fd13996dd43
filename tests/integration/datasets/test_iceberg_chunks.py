"""Test chunks on Iceberg tables: what they change and leave alone, beside other writers, kills and earlier runners."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import pyarrow as pa
import pytest

from makewhole.config.connections import from_environment
from makewhole.datasets.iceberg.write import chunk_commit, commit, partitions
from makewhole.datasets.nested_values import row_images
from makewhole.kinds import tables_of
from makewhole.model.errors import LeaseLostError, RefusedError
from makewhole.model.points import PointKind, TablePoint
from makewhole.tables.effects import EffectKind
from makewhole.tables.items import QuarantineRows, UpsertRow
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.tables import Tables
from tests.world.iceberg_lake import ORDERS, Lake, in_order, rows_of
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

TABLE = "dw.orders"
POINT = TablePoint(name="lake", kind=PointKind.STORE, connection="lake", table=TABLE, key=("id",), time="at")
WIDE: dict[str, Any] = {
    "id": pa.string(),
    "amount": pa.decimal128(8, 2),
    "at": pa.timestamp("us", "UTC"),
    "raw": pa.binary(),
    "fixed": pa.binary(4),
    "weight": pa.float64(),
    "light": pa.float32(),
    "day": pa.date32(),
    "hour": pa.time64("us"),
    "local": pa.timestamp("us"),
    "is_paid": pa.bool_(),
    "tags": pa.list_(pa.string()),
    "prices": pa.map_(pa.string(), pa.decimal128(9, 3)),
    "ship": pa.struct([pa.field("to", pa.struct([pa.field("zip", pa.string())])), pa.field("n", pa.int32())]),
}


def chunk_id(number: int = 0, lease: int = 1, plan: str = "shop-1-0123456789ab") -> ChunkId:
    """Return the identity of a chunk."""
    return ChunkId(plan=plan, plan_sha256="0" * 64, target="lake", chunk=number, lease_epoch=lease)


def new_row(seq: int, number: int) -> UpsertRow:
    """Return the insertion of an order."""
    row = orders([number])[0]
    value = f'{{"number": {number}, "region": "{row["region"]}", "amount": {row["amount"]}, "at": "{row["at"]}"}}'
    return UpsertRow(
        seq=seq,
        key=row["id"],
        key_columns=("id",),
        columns=("id", "number", "region", "amount", "at"),
        value=value,
        before=(),
        expected=(("amount", "decimal(8,2)", row["amount"]),),
    )


def new_amount(tables: Tables, seq: int, key: str, amount: str) -> UpsertRow:
    """Return the change of the amount of an order that is there."""
    with tables.session("look") as session:
        rows = session.open_table(POINT).rows_of_key(key)
    return UpsertRow(
        seq=seq,
        key=key,
        key_columns=("id",),
        columns=("id", "amount"),
        value=f'{{"amount": {amount}}}',
        before=tuple(rows),
        expected=(("amount", "decimal(8,2)", amount),),
    )


def extra_copy(tables: Tables, seq: int, key: str) -> QuarantineRows:
    """Return the moving aside of all rows of a key but the first."""
    with tables.session("look") as session:
        survivor, *extras = session.open_table(POINT).rows_of_key(key)
    return QuarantineRows(seq=seq, key=key, survivor=survivor, extras=tuple(extras))


def write(tables: Tables, chunk: ChunkId, *items: UpsertRow | QuarantineRows) -> ReceiptRow:
    """Write a chunk, as a runner does that has just begun."""
    with tables.writer(POINT, "test") as writer:
        writer.receipts(chunk)
        return writer.write_chunk(POINT, chunk, items, lambda *_: {})


def images(lake: Lake, name: str = TABLE) -> dict[str, list[str]]:
    """Return every row exactly, by key."""
    rows = lake.table(name).scan().to_arrow()
    by_key: dict[str, list[str]] = {}
    for key, image in zip(rows.column("id").to_pylist(), row_images(rows), strict=True):
        by_key.setdefault(str(key), []).append(image)
    return by_key


def wide_row(number: int) -> Mapping[str, Any]:
    """Return a row with a value, or none, in every column."""
    nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + number))[0]
    return {
        "id": f"O{number}",
        "amount": Decimal(number),
        "at": datetime(2025, 3, 1, 0, 0, number, 123_456, UTC),
        "raw": bytes([0, 255, number]),
        "fixed": b"abc" + bytes([number]),
        "weight": nan if number else -0.0,
        "light": 0.1,
        "day": date(1, 1, 1),
        "hour": time(23, 59, 59, 999_999),
        "local": datetime(9999, 12, 31, 23, 59, 59, 999_999),
        "is_paid": None,
        "tags": [None, "", "é"] if number % 2 else [],
        "prices": [("a", Decimal("1.250")), ("b", None)] if number % 2 else None,
        "ship": {"to": {"zip": None} if number % 2 else None, "n": None},
    }


def test_rows_that_a_commit_writes_again_keep_every_column_bit_for_bit(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE, pa.schema(WIDE), properties={"owner": "anna"})
    lake.append(TABLE, [wide_row(number) for number in range(5)])
    lake.append(TABLE, [wide_row(3)])
    before, table = images(lake), lake.table(TABLE)

    receipt = write(tables, chunk_id(), new_amount(tables, 0, "O1", "77.25"), extra_copy(tables, 1, "O3"))

    assert (receipt.actions, receipt.refused) == (2, {})
    after = images(lake)
    assert before["O3"][0] == before["O3"][1]
    assert {key: rows for key, rows in after.items() if key != "O1"} == {
        key: rows[:1] for key, rows in before.items() if key != "O1"
    }
    assert after["O1"] == [before["O1"][0].replace('"1.00"', '"77.25"')]
    assert lake.table(TABLE).properties == table.properties
    assert lake.table(TABLE).schema() == table.schema()


def test_files_without_rows_of_a_chunk_are_not_touched(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    with lake.table(TABLE).update_spec() as update:
        update.add_identity("region")
    for day in range(3):
        lake.append(TABLE, rows_of(orders(range(10 * day, 10 * day + 4), day)))
    files = {task.file.file_path for task in lake.table(TABLE).scan().plan_files()}

    write(tables, chunk_id(), new_amount(tables, 0, "O11", "0.01"), new_row(1, 50))

    now = {task.file.file_path for task in lake.table(TABLE).scan().plan_files()}
    assert (len(files - now), len(now - files)) == (1, 3)
    regions = [task.file.partition[0] for task in lake.table(TABLE).scan().plan_files()]
    assert sorted(regions) == ["EU"] * 4 + ["US"] * 4
    assert {row["id"]: str(row["amount"]) for row in lake.rows(TABLE)}["O11"] == "0.01"


def test_a_chunk_holds_the_rows_of_one_file_at_a_time(
    lake: Lake, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.make_table(TABLE)
    for day in range(3):
        lake.append(TABLE, rows_of(orders(range(10 * day, 10 * day + 4), day)))
    items = [new_amount(tables, seq, f"O{10 * seq + 1}", "0.01") for seq in range(3)]
    steps: list[str] = []

    def noted(of: Any, name: str, step: str) -> None:
        done = getattr(of, name)

        def do(*arguments: Any) -> Any:
            steps.append(step)
            return done(*arguments)

        monkeypatch.setattr(of, name, do)

    noted(chunk_commit.ChunkSource, "_kept", "read")
    noted(partitions, "_dataframe_to_data_files", "write")
    with tables.writer(POINT, "test") as writer:
        writer.receipts(chunk_id())
        steps.clear()
        assert writer.write_chunk(POINT, chunk_id(), items, lambda *_: {}).actions == 3

    first = steps.index("read")  # what is kept of the plan was written before
    assert steps[first : first + 7] == ["read", "write"] * 3 + ["write"]
    amounts = [str(row["amount"]) for row in lake.rows(TABLE)]
    assert (len(amounts), amounts.count("0.01")) == (12, 3)


Commit = Callable[..., int | None]


def before_each_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Have something done before each commit of a chunk."""

    def acted(table: Any, **settings: Any) -> int | None:
        act()
        return commit.commit(table, **settings)

    monkeypatch.setattr(chunk_commit, "commit", acted)


def test_a_chunk_that_another_writer_came_before_is_decided_again(
    lake: Lake, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    items = new_row(0, 5), new_row(1, 6), new_amount(tables, 2, "O1", "9.00")
    came = iter(["insert", "delete"])

    def act() -> None:
        match next(came, None):
            case "insert":
                lake.append(TABLE, rows_of(orders([5])))
            case "delete":
                lake.table(TABLE).delete("id = 'O1'")

    before_each_commit(monkeypatch, act)

    receipt = write(tables, chunk_id(), *items)

    assert {seq: str(refusal) for seq, refusal in receipt.refused.items()} == {
        0: "arrived: a row of this key appeared after the plan was made",
        2: "erased: the row of this key is gone since the plan was made",
    }
    assert lake.rows(TABLE) == in_order(rows_of(orders([0, 2, 5, 6])))


class Killed(BaseException):
    """The runner is gone."""


def test_a_runner_killed_between_commit_and_report_leaves_a_receipt(
    lake: Lake, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))

    def killed(table: Any, **settings: Any) -> int | None:
        commit.commit(table, **settings)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(chunk_commit, "commit", killed)
        with pytest.raises(Killed):
            write(tables, chunk_id(), new_row(0, 5))
    lake.append(TABLE, rows_of(orders([7])))

    receipt = write(tables, chunk_id(lease=2), new_row(0, 5))

    assert (receipt.actions, receipt.refused, receipt.lease_epoch) == (1, {}, 1)
    assert lake.rows(TABLE) == in_order(rows_of(orders([0, 1, 2, 5, 7])))
    with tables.writer(POINT, "test") as writer:
        effects = [effect for some in writer.effects(chunk_id().plan, "lake", 2) for effect in some]
    assert [(effect.seq, effect.kind) for effect in effects] == [(0, EffectKind.INSERTED)]


def test_a_runner_that_wakes_after_another_one_took_over_commits_nothing(
    lake: Lake, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    asleep: list[Callable[[], int | None]] = []

    def falls_asleep(table: Any, **settings: Any) -> int | None:
        asleep.append(lambda: commit.commit(table, **settings))
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(chunk_commit, "commit", falls_asleep)
        with pytest.raises(Killed):
            write(tables, chunk_id(), new_row(0, 5))
    with tables.writer(POINT, "test") as writer:
        assert writer.receipts(chunk_id(lease=2)) == []

    assert asleep[0]() is None
    with pytest.raises(LeaseLostError, match="a newer runner has been at lake"):
        write(tables, chunk_id(lease=1), new_row(0, 5))
    assert lake.rows(TABLE) == in_order(rows_of(orders(range(3))))
    assert write(tables, chunk_id(lease=2), new_row(0, 5)).actions == 1
    assert lake.rows(TABLE) == in_order(rows_of(orders([0, 1, 2, 5])))


def test_what_cannot_be_known_for_expired_snapshots_is_refused(
    lake: Lake, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))

    def killed(table: Any, **settings: Any) -> int | None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(chunk_commit, "commit", killed)
        with pytest.raises(Killed):
            write(tables, chunk_id(), new_row(0, 5))
    old = lake.table(TABLE).history()[0].snapshot_id
    lake.append(TABLE, rows_of(orders([7])))
    lake.table(TABLE).maintenance.expire_snapshots().by_id(old).commit()

    with pytest.raises(RefusedError, match=r"whether chunk 0 of a plan was committed to dw\.orders cannot be known"):
        write(tables, chunk_id(lease=2), new_row(0, 5))


def test_a_value_that_a_column_does_not_hold_and_a_changed_row_are_refused(lake: Lake, tables: Tables) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(3))))
    changed = new_amount(tables, 0, "O1", "5.00")
    table = lake.table(TABLE)
    table.overwrite(
        pa.Table.from_pylist([{**rows_of(orders([1]))[0], "region": "XX"}], schema=table.schema().as_arrow()),
        overwrite_filter="id = 'O1'",
    )
    too_large = new_amount(tables, 1, "O2", "12345678.00")

    receipt = write(tables, chunk_id(), changed, too_large)

    assert {seq: str(refusal).partition(" (")[0] for seq, refusal in receipt.refused.items()} == {
        0: "stale: the row of this key changed after the plan was made",
        1: "unfit: the table does not take it: amount",
    }
    assert len(lake.table(TABLE).history()) == 3  # nothing was committed for a chunk that does nothing
    assert ORDERS.names == lake.table(TABLE).schema().as_arrow().names


def test_a_catalogue_in_postgresql_is_read_and_written_with_its_password_apart(
    lake: Lake, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(journal)
    own = replace(lake, uri=urlunsplit(address._replace(scheme="postgresql+psycopg2")))
    own.make_table(TABLE)
    own.append(TABLE, rows_of(orders(range(3))))
    host = address.netloc.rpartition("@")[2]
    uri = urlunsplit(address._replace(scheme="postgresql+psycopg2", netloc=f"{{login}}:{{password}}@{host}"))
    fields = json.loads(own.described)
    described = {
        "conn_type": "iceberg",
        "login": unquote(address.username or ""),
        "password": unquote(address.password or ""),
        "extra": {**fields["extra"], "uri": uri},
    }
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(described))
    tables = tables_of(from_environment("lake"))

    receipt = write(tables, chunk_id(), new_row(0, 5), new_amount(tables, 1, "O1", "9.00"))

    assert (receipt.actions, receipt.refused) == (2, {})
    assert own.rows(TABLE) == in_order(rows_of([*orders([0, 2, 5]), {**orders([1])[0], "amount": "9.00"}]))
