"""Test that a row is written as it is judged, for every declared type and every type of column, or is not written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import pytest

from makewhole.compute.column_values import ColumnValue, as_object, parse_fields
from makewhole.model.errors import PermanentError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.connect import connect
from makewhole.postgres.table import describe_table, rows_of_key
from makewhole.postgres.write import halving
from makewhole.postgres.write.apply import apply_chunk
from makewhole.postgres.write.dry_run import forecast_chunk, read_only_session
from makewhole.postgres.write.receipts import ensure_schema
from makewhole.sql import PgConnection
from makewhole.tables.items import UpsertRow
from makewhole.tables.receipts import ChunkId
from tests.integration.postgres.people import People
from tests.integration.postgres.store import Store
from tests.world.examples import in_turn
from tests.world.sql import Rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

KINDS = (True, False)
ZONES = ["Asia/Kolkata", "America/New_York"]
COLUMNS = [
    "text",
    "varchar(12)",
    "char(12)",
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "numeric(6,2)",
    "real",
    "double precision",
    "money",
    "boolean",
    "timestamp",
    "timestamp(0)",
    "timestamptz",
    "timestamptz(3)",
    "date",
    "time",
    "timetz",
    "interval",
    "uuid",
    "bytea",
    "json",
    "jsonb",
    "inet",
    "int[]",
    "mood",
    "word",
]
NOON = [
    '"2013-01-01T12:00:00+02:00"',
    '"2013-01-01 12:00:00+02"',
    '"2013-01-01T12:00:00.1234567-05:30"',
    '"2013-07-01T12:00:00"',
    '"2013-07-01 12:00:00Z"',
    '"20130701T120000+0900"',
    '"2013-01-01T00:00:00Z"',
    '"2012-12-31T22:00:00-02:00"',
    '"2012-W52-1T10:00:00+01:00"',
    '"1883-11-18T12:00:00+05:53:28"',
    '"0001-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59.9999996Z"',
    '"infinity"',
    '"now"',
    "1356998400",
    '""',
]
NUMBERS = ["0", "-0.0", "7", "7.0", "-7.04", "7.05", "1e2", "1E-7", "9007199254740993", "0.1", '"7"', '"7.00"', '" 7"']
TEXTS = [
    '"a"',
    '"a  "',
    '"ü🙂"',
    '"2013-01-01 00:00:00"',
    '"true"',
    '"12"',
    '"1.2.3.4"',
    '"sad"',
    '"x, y"',
    '"\\u0000"',
]
VALUES: dict[str, list[str]] = {
    "string": [*TEXTS, *NUMBERS, "true", '{"a": 1}', "[1]", '""', "null"],
    "int": [*NUMBERS, "1e999999999", "null"],
    "bigint": [*NUMBERS, '"x"', '"NaN"', "null"],
    "double": [*NUMBERS, "1e300", "1e-300", "5e-324", "1e400", '"NaN"', '"-Infinity"', "null"],
    "boolean": ["true", "false", '"TRUE"', '"False"', '"t"', "1", "0", "null"],
    "decimal(6,1)": [*NUMBERS, '"NaN"', '"Infinity"', "1e100", "null"],
    "decimal(38,9)": [*NUMBERS, "null"],
    "timestamp": [*NOON, "null"],
    "date": ['"2013-02-28"', '"20130228"', '"0001-01-01"', '"2013-01-01T00:30:00+02:00"', '"infinity"', '""', "null"],
}
# The number of values that these take at least: nothing is so safe as to refuse everything.
TAKEN = {
    ("timestamp", "timestamp"): 12,
    ("timestamp", "timestamptz"): 12,
    ("timestamp", "date"): 3,
    ("date", "date"): 4,
    ("date", "timestamp"): 3,
    ("date", "timestamptz"): 3,
    ("string", "text"): 23,
    ("string", "varchar(12)"): 21,
    ("int", "integer"): 7,
    ("int", "bigint"): 8,
    ("int", "text"): 5,
    ("bigint", "numeric"): 9,
    ("double", "real"): 11,
    ("double", "double precision"): 17,
    ("boolean", "boolean"): 4,
    ("boolean", "text"): 4,
    ("decimal(6,1)", "numeric"): 16,
    ("decimal(38,9)", "numeric(6,2)"): 10,
}


@dataclass(frozen=True)
class Case:
    """A table `store` with a column `x`, and records for it: `raws` are their values of `x`, as JSON texts."""

    store: Store
    session: PgConnection
    reading: PgConnection
    declared: str
    raws: Sequence[str]

    def sql(self, statement: str, *values: Any) -> Rows:
        """Run a statement, committed."""
        with self.session, self.session.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def items(self, *, is_missing: bool) -> list[UpsertRow]:
        """Return what a plan would write, of every record."""
        table = describe_table(self.session, self.store.point)
        changed = []
        for seq in range(len(self.raws)):
            value = self.value(seq, table.base_types["x"])
            expected = (("x", *value.expected),)
            item = self.store.missing(seq, f"k{seq}", as_object({"x": value}).decode(), ("id", "x"), expected)
            before = [] if is_missing else rows_of_key(self.session, table, self.store.point, item.key)
            changed.append(replace(item, before=tuple(before)))
        return changed

    def apply(self, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
        """Write a chunk and return its refusals."""
        self.sql("delete from makewhole.receipt; delete from makewhole.effect")
        return dict(apply_chunk(self.session, self.store.point, _CHUNK, items).refused)

    def forecast(self, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
        """Return the refusals that a dry run forecasts."""
        return dict(forecast_chunk(self.reading, self.store.point, _CHUNK, items, lambda _: []).refused)

    def value(self, seq: int, column: str) -> ColumnValue:
        """Return the value of a record for a column of a type."""
        return ColumnValue.of_record(parse_fields(f'{{"x": {self.raws[seq]}}}'.encode())["x"], self.declared, column)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    store = Store(database)
    store.sql("create type mood as enum ('sad', 'ok'); create domain word as text check (value <> 'a')")
    with connect(store.connection) as session:
        ensure_schema(session)
    yield store


@pytest.mark.parametrize(("declared", "zone"), [*zip(VALUES, cycle(ZONES), strict=False), ("timestamp", ZONES[0])])
def test_what_is_written_compares_equal_or_is_refused(
    store: Store, declared: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: every value meets every type of column, in many writes and one by one. A column type takes its turn
    with rows that are missing or there, and every eighth one takes it at all; `make test-all` has both of each."""
    store.sql(f"do $$ begin execute format('alter database %I set timezone to ''{zone}''', current_database()); end $$")
    assert store.sql("show timezone") == [(zone,)]
    with connect(store.connection) as session, read_only_session(store.connection) as reading:
        _require_all_columns(Case(store, session, reading, declared, VALUES[declared]), monkeypatch)


def _require_all_columns(case: Case, patch: pytest.MonkeyPatch) -> None:
    first = list(VALUES).index(case.declared)
    taken = {
        column: min(
            _taken(case, column, is_missing=is_missing, patch=patch) for is_missing in in_turn(number // 8, KINDS)
        )
        for number, column in enumerate(COLUMNS, first)
        if (case.declared, column) in TAKEN or number % 8 in in_turn(0, range(8))
    }
    wanted = {column: number for (declared, column), number in TAKEN.items() if declared == case.declared}
    assert {column: taken[column] for column, number in wanted.items() if taken[column] < number} == {}


def _taken(case: Case, column: str, *, is_missing: bool, patch: pytest.MonkeyPatch) -> int:
    """Write all records by both writers; require that what is there is as expected, and the rest refused."""
    outcomes = []
    for few in (1, 1_000):
        case.sql(f"drop table if exists store; create table store (id text primary key, x {column})")
        if not is_missing:
            case.sql("insert into store select 'k' || n from generate_series(0, %s) as n", len(case.raws) - 1)
        items = case.items(is_missing=is_missing)
        forecasts = case.forecast(items)
        patch.setattr(halving, "_FEW", few)
        refused = case.apply(items)
        assert {seq: _kind(refusal) for seq, refusal in forecasts.items()} == {
            seq: _kind(refusal) for seq, refusal in refused.items()
        }
        _require_equal(case, refused, is_missing=is_missing)
        if column in ("timestamp", "timestamptz"):
            _require_moments(case, refused)
        outcomes.append((dict(refused), case.sql("select id, x::text from store order by id")))
    assert outcomes[0] == outcomes[1], f"{case.declared} in {column}: the writers differ"
    return len(case.raws) - len(outcomes[0][0])


def _kind(refusal: Refusal) -> tuple[RefusalCode, str]:
    """Return a refusal without PostgreSQL's own error: the dry run casts the text where the run writes the row."""
    return refusal.code, "" if refusal.text.startswith("the table does not take it") else refusal.text


def _require_equal(case: Case, refused: dict[int, Refusal], *, is_missing: bool) -> None:
    """Require of every record that its row, as a snapshot reads it, is what the record is judged by; or is not done. A
    text is judged without the blanks at its end where a column pads it with them."""
    assert all(refusal.code is RefusalCode.UNFIT for refusal in refused.values())
    texts = _read_back(case)
    is_padded = describe_table(case.session, case.store.point).base_types["x"] == "bpchar"
    judged = replace(case, declared="char") if is_padded and case.declared == "string" else case
    if texts is None:
        assert len(refused) == len(case.raws), "a table that cannot be read was written"
        return
    for seq in range(len(case.raws)):
        if seq not in refused:
            assert texts[f"k{seq}"] == judged.value(seq, "").text, f"{case.raws[seq]} as {case.declared}"
        else:
            assert texts.get(f"k{seq}") is None and (f"k{seq}" in texts) is not is_missing


def _require_moments(case: Case, refused: dict[int, Refusal]) -> None:
    """Require that a column of moments has those of the records, whatever of them is compared."""
    exact = replace(case, declared="timestamp")
    texts = _read_back(exact) or {}
    written = [seq for seq in range(len(case.raws)) if seq not in refused]
    assert {seq: texts[f"k{seq}"] for seq in written} == {seq: exact.value(seq, "").text for seq in written}


def _read_back(case: Case) -> dict[str, Any] | None:
    """Return the text of each key, as a snapshot reads it; None where it cannot read the column."""
    people = People(connection=case.store.connection)
    if not case.sql("select 1 from store limit 1"):
        return {}
    try:
        frame = people.texts(people.shape(table="store", compare={"x": case.declared}))
    except PermanentError:
        return None
    return dict(frame.select("key", "c:x").rows())


_CHUNK = ChunkId(plan="shop-1-0123456789ab", plan_sha256="0" * 64, target="store", chunk=0, lease_epoch=1)
