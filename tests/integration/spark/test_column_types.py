"""Test that equal values compare equal whatever type their column has, and that one bad value stops nothing."""

import json
from typing import Any

import pytest
import typer

from makewhole.cli.check.command import check
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import ConfigurationError
from makewhole.model.window import WindowState
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MISMATCHED = ("mismatched", "value_differs")
OBSERVING = {"hop": {"write": "{}"}, "is_observing": True}


def with_column(shop: ReconciledShop, column_type: str, store_type: str | None = None, *, name: str = "x") -> None:
    """Give both tables a further column; the store's may be of another type."""
    shop.sql(f"alter table outbox add column {name} {column_type}")
    shop.sql(f"alter table warehouse add column {name} {store_type or column_type}")


def trade(
    shop: ReconciledShop, records: list[Order], rows: list[Order] | None = None, *, stored: list[Order] | None = None
) -> None:
    """Take orders all the way. `rows` are what the tables get, by default what the records say; `stored` are those of
    the store, where it has others."""
    shop.write("outbox", rows or records)
    for record in records:
        shop.send_raw(json.dumps(record).encode(), key=None)
    shop.write("warehouse", stored or rows or records)


def found(shop: ReconciledShop) -> dict[str, dict[str, tuple[str, str]]]:
    """Judge the first window; return the findings of both hops."""
    context = shop.judged()
    return {hop: shop.found(context, hop) for hop in (LEDGER_HOP, STORE_HOP)}


NOTHING: dict[str, dict[str, tuple[str, str]]] = {LEDGER_HOP: {}, STORE_HOP: {}}


def test_a_text_among_amounts_is_a_difference_of_its_row_alone(shop: ReconciledShop) -> None:
    with_column(shop, "text")
    shop.describe(compare='{x: "decimal(8,2)"}', **OBSERVING)  # type: ignore[arg-type]
    records = [order | {"x": number} for number, order in enumerate(orders(range(8)))]
    rows = [order | {"x": f"{number}.0"} for number, order in enumerate(orders(range(8)))]
    records[6]["x"] = rows[6]["x"] = "n/a"
    rows[7]["x"] = "n/a"
    trade(shop, records, rows)
    context, closed = shop.whole_way()
    assert shop.found(context, LEDGER_HOP) == shop.found(context, STORE_HOP) == {"O7": MISMATCHED}
    assert closed.state is WindowState.GAPS


def test_a_row_of_infinite_time_stops_nothing(shop: ReconciledShop) -> None:
    shop.describe(compare='{amount: "decimal(8,2)", at: timestamp}', **OBSERVING)  # type: ignore[arg-type]
    records = orders(range(6))
    trade(shop, records)
    shop.write("outbox", [orders([6])[0] | {"at": "infinity"}])
    shop.write("warehouse", [orders([7])[0] | {"at": "-infinity"}])
    context = shop.judged()
    assert set(shop.found(context, LEDGER_HOP)) <= {"O6"}
    assert set(shop.found(context, STORE_HOP)) <= {"O7"}


def test_a_view_is_a_store_that_can_be_read(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse rename to loaded; create view warehouse as select * from loaded")
    shop.describe(**OBSERVING)  # type: ignore[arg-type]
    records = orders(range(8))
    shop.write("outbox", records)
    shop.send(records)
    shop.write("loaded", [*records[:6], records[2], records[7] | {"amount": "0.00"}])
    context, closed = shop.whole_way()
    assert shop.found(context, LEDGER_HOP) == {}
    assert shop.found(context, STORE_HOP) == {
        "O2": ("duplicate", "written_before_committed"),
        "O6": ("missing", "lost_after_topic"),
        "O7": MISMATCHED,
    }
    assert closed.state is WindowState.GAPS


def test_the_windows_of_a_view_follow_each_other(shop: ReconciledShop) -> None:
    """Of its rows nothing shows when they came: those of the window before are no late ones, and no findings."""
    shop.sql("alter table warehouse rename to loaded; create view warehouse as select * from loaded")
    shop.describe(**OBSERVING)  # type: ignore[arg-type]
    for day in range(2):
        records = orders(range(day * 10, day * 10 + 8), day)
        shop.write("outbox", records)
        shop.send(records)
        shop.write("loaded", records)
        context, closed = shop.whole_way(day)
        assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    shop.write("loaded", [orders([20], 2)[0]])
    later = orders(range(21, 25), 2)
    shop.write("outbox", later)
    shop.send(later)
    shop.write("loaded", later[1:])
    context, closed = shop.whole_way(2)
    verdicts = shop.found(context, STORE_HOP)
    assert verdicts["O21"] == ("missing", "lost_after_topic")
    assert set(verdicts) <= {"O20", "O21"}
    assert closed.state is not WindowState.CERTIFIED


def test_what_a_view_lacks_is_redelivered_to_its_topic(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse rename to loaded; create view warehouse as select * from loaded")
    shop.describe(hop={"write": "{}", "compensation": "{missing: redeliver, duplicate: report, unexpected: report}"})
    records = orders(range(8))
    shop.write("outbox", records)
    shop.send(records)
    shop.write("loaded", records[:7])
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert [record.key_text for record in shop.read()[8:]] == ["O7"]


def test_a_view_is_not_written_and_the_message_says_so(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse rename to loaded; create view warehouse as select * from loaded")
    shop.describe(hop={"write": "{}", "compensation": "{missing: upsert, duplicate: quarantine, unexpected: report}"})
    with pytest.raises(ConfigurationError) as caught:
        shop.ask()
    assert str(caught.value).splitlines() == [
        "pipeline file: hops orders→warehouse.compensation.missing: warehouse (point warehouse) is a view, and "
        "'upsert' cannot write into it. Write `missing: report`, or name the table that its rows lie in",
        "pipeline file: hops orders→warehouse.compensation.duplicate: warehouse (point warehouse) is a view, and "
        "'quarantine' cannot write into it. Write `duplicate: report`, or name the table that its rows lie in",
    ]


UNFIT = [
    "compare.x: outbox.x (point outbox) is of type uuid, of which no value is compared as int. Write `x: string`",
    "compare.x: warehouse.x (point warehouse) is of type point, of which no value is compared as int. "
    "Write `x: string`",
    "compare.a: warehouse.a (point warehouse) is of type addr, which no type reads. Take a out, or name a view that "
    "makes one of PostgreSQL's plain types of it",
    "compare.z: outbox.z (point outbox) is of type boolean and warehouse.z (point warehouse) is of type integer: no "
    "value is both. Take z out, or name a view that makes one of PostgreSQL's plain types of it",
    "hops outbox→orders.where: outbox.y (point outbox) is of type integer, and n/a is none that it can be compared "
    "with. Write a literal that is one, or filter by another column",
    "points.outbox.time: outbox.day (point outbox) is of type text, which is no moment. Name a column of type "
    "timestamptz, timestamp or date, or a view that casts",
    "points.outbox.version: outbox.ver (point outbox) is of type uuid, which is no version. Name a column of type "
    "bigint, integer, numeric, timestamptz, timestamp or date",
]


def test_what_cannot_be_read_is_refused_at_opening_all_of_it_by_name(
    shop: ReconciledShop, capsys: pytest.CaptureFixture[str]
) -> None:
    with_column(shop, "uuid", "point")
    shop.sql("create type addr as (street text); alter table warehouse add column a addr, add column z integer")
    shop.sql("alter table outbox add column ver uuid, add column day text, add column y integer, add column z boolean")
    shop.sql("alter table warehouse add column ver bigint; alter table outbox add column a text")
    shop.describe(
        compare="{x: int, a: string, z: string}",
        has_version=True,
        ledger_hop={"where": "\"y = 'n/a'\""},
        **OBSERVING,  # type: ignore[arg-type]
    )
    text = shop.file.read_text().replace("version: version", "version: ver").replace("time: at", "time: day", 1)
    shop.file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        shop.ask()
    assert str(caught.value).splitlines() == [f"pipeline file: {line}" for line in UNFIT]
    with pytest.raises(typer.Exit):
        check([shop.file], tables=True)
    output = capsys.readouterr().out
    assert all(line.partition(": ")[0] in output for line in UNFIT) and f"{len(UNFIT)} problems" in output
    shop.describe(**OBSERVING)  # type: ignore[arg-type]
    check([shop.file], tables=True)


def test_a_ledger_row_of_infinite_time_is_sent_as_one_without_a_time(shop: ReconciledShop) -> None:
    shop.describe(
        ledger_hop={"compensation": "{missing: produce}"}, hop={"write": "{}", "compensation": "{missing: report}"}
    )
    records = orders(range(4))
    trade(shop, records)
    shop.write("outbox", [orders([4])[0] | {"at": "infinity"}])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O4": ("missing", "never_produced")}
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert [record.key_text for record in shop.read()[4:]] == ["O4"]


REPAIRED: list[tuple[str, Any, Any]] = [
    ("jsonb", {"b": 1.50, "a": [1, None]}, {}),
    ("json", [1, 2], [2, 1]),
    ("int[]", [1, 2], [2, 1]),
    ("text[]", ["a", None, "b c"], []),
    ("char(5)", "ab", "b"),
    ("inet", "10.0.0.1", "10.0.0.2"),
    ("uuid", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "6f9619ff-8b86-d011-b42d-00c04fc964fe"),
    ("real", 0.1, 0.2),
    ("numeric", 1e-7, 2),
    ("timestamptz", "2013-01-01 00:00:00 UTC", "2013-01-01 00:00:01 UTC"),
]
"""A type, what the record says, and what a row has instead."""


def test_what_a_repair_writes_compares_equal(shop: ReconciledShop) -> None:
    """Each type is a column of its own of every order; one row differs in all of them, another in the last alone."""
    names = [f"x{number}" for number in range(len(REPAIRED))]
    for name, (column_type, _, _) in zip(names, REPAIRED, strict=True):
        with_column(shop, column_type, name=name)
        shop.more_columns[name] = "string"
    shop.describe(
        compare=f"{{{', '.join(f'{name}: string' for name in names)}}}",
        hop={"compensation": "{missing: upsert, mismatched: upsert}"},
    )
    right, wrong = ({name: column[at] for name, column in zip(names, REPAIRED, strict=True)} for at in (1, 2))
    records = [order | right for order in orders(range(5))]
    trade(shop, records, stored=[*records[:2], records[2] | wrong, records[3] | {names[-1]: wrong[names[-1]]}])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O2": MISMATCHED,
        "O3": MISMATCHED,
        "O4": ("missing", "lost_after_topic"),
    }
    assert sorted(shop.evidence(context, STORE_HOP, "O2")["columns"]) == sorted(names)
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    closed = shop.certify(context)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)


@pytest.mark.parametrize("key_type", ["inet", "cidr", "macaddr", "bytea", "bit(8)", "time", "money"])
def test_a_key_is_found_whatever_the_type_of_its_column(shop: ReconciledShop, key_type: str) -> None:
    values = {
        "inet": lambda n: f"10.0.0.{n}",
        "cidr": lambda n: f"10.0.{n}.0/24",
        "macaddr": lambda n: f"08:00:2b:01:02:{n:02x}",
        "bytea": lambda n: f"\\x00{n:02x}",
        "bit(8)": lambda n: f"{n:08b}",
        "time": lambda n: f"{n:02d}:00:00",
        "money": lambda n: f"${n}.50",
    }
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} drop column id; alter table {table} add column id {key_type}")
    shop.describe(**OBSERVING)  # type: ignore[arg-type]
    trade(shop, [order | {"id": values[key_type](number)} for number, order in enumerate(orders(range(8)))])
    assert found(shop) == NOTHING


HELD: list[tuple[str, list[Any]]] = [
    ("jsonb", [{"b": 1.50, "a": [1, None, "ü\n"]}, [1, 2], {}, "text", 7, True, None, {"a": {"b": [{}]}}]),
    ("json", [{"b": 1.50, "a": [1, None, "ü\n"]}, [1, 2], {}, "text", 7, True, None, {"a": {"b": [{}]}}]),
    ("int[]", [[1, 2], [], None, [3, None], [4], [5], [6], [7]]),
    ("text[]", [["a", "b c"], ["", "null"], ['"', "\\", "{}"], [None], [], None, ["ü"], [","]]),
    ("boolean", [True, False, None, True, False, True, False, True]),
    ("timestamptz", [f"2013-01-01T0{n}:00:00+00:00" for n in range(8)]),
    ("float8", [0.1, 1e20, 1e-7, 3, -0.0, 1e16, 123456.789, None]),
    ("real", [0.1, 1e20, 1e-7, 3, -0.0, 16777216, 1.5, None]),
    ("real", [0.10000000149011612, 1.0000000200408773e20, 16777217, 0.3, -0.0, 2.5, 1.5, None]),
    ("numeric", [0.0000001, 100, 1.50, 5, -7, 1e3, 2, None]),
    ("time", ["12:00", "12:00:00.500", "00:00", "24:00:00", "23:59:59.999999", "01:02:03.10", None, "10:00:00"]),
    ("macaddr", ["08-00-2B-01-02-03", "0800.2b01.0203", None, "08:00:2b:01:02:03", *["08002b010203"] * 4]),
    ("money", [5.00, "$1,234.50", "7", -0.25, 1e3, "-$0.10", 12345678.9, None]),
    ("char(5)", ["ab   ", "c", "", "d e", "fffff", " g", None, "h"]),
    ("inet", ["10.0.0.1", "10.0.0.0/8", "::1", "fe80::/10", "1.2.3.4/32", None, "1.1.1.1", "2.2.2.2"]),
]
"""A type, and what eight rows of it hold."""


def test_values_that_a_column_holds_equal_those_of_the_record(shop: ReconciledShop) -> None:
    """Each type is a column of its own of every order; one that is not equal would be named by the findings."""
    for number, (column_type, _) in enumerate(HELD):
        with_column(shop, column_type, name=f"x{number}")
    shop.describe(compare=f"{{{', '.join(f'x{at}: string' for at in range(len(HELD)))}}}", **OBSERVING)  # type: ignore[arg-type]
    held = [{f"x{at}": values[row] for at, (_, values) in enumerate(HELD)} for row in range(8)]
    trade(shop, [order | held[row] for row, order in enumerate(orders(range(8)))])
    context = shop.judged()
    differing = {
        (hop, key): shop.evidence(context, hop, key)
        for hop in (LEDGER_HOP, STORE_HOP)
        for key in shop.found(context, hop)
    }
    assert differing == {}


def test_a_filter_compares_by_value(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add column rate numeric; alter table outbox add column rate text")
    shop.describe(compare="{rate: string}", ledger_hop={"where": "rate = 19.0"}, hop={"where": "rate = 19.0"},
                  is_observing=True)  # fmt: skip
    records = [order | {"rate": "19.00"} for order in orders(range(8))]
    other = [order | {"rate": "7.00"} for order in orders(range(8, 10))]
    trade(shop, records)
    shop.write("outbox", other)
    assert found(shop) == NOTHING


@pytest.mark.parametrize(
    "spelling",
    ["2025-03-01 00:{:02d}:00 UTC", "2025-03-01T00:{:02d}:00z", "2025-02-28T24:00:00Z", "2025-03-01 00:{:02d}+00"],
)
def test_times_that_postgresql_reads_are_read(shop: ReconciledShop, spelling: str) -> None:
    shop.describe(compare="{at: timestamp}", **OBSERVING)  # type: ignore[arg-type]
    trade(shop, [order | {"at": spelling.format(number)} for number, order in enumerate(orders(range(8)))])
    assert found(shop) == NOTHING


FINER = [
    pytest.param("timestamptz(3)", "timestamp", "timestamp(3)", "2025-03-01T00:00:00.{n}237{n}Z", id="milliseconds"),
    pytest.param("timestamp(0)", "timestamp(3)", "timestamp(0)", "1999-12-31T23:59:5{n}.{n}5Z", id="seconds"),
    pytest.param("numeric(8,1)", '"decimal(8,2)"', '"decimal(8,1)"', "{n}.2{n}", id="tenths"),
]


@pytest.mark.parametrize(("column_type", "declared", "held", "value"), FINER)
def test_a_column_with_fewer_digits_than_are_declared_is_refused_with_the_type_that_compares_what_it_holds(
    shop: ReconciledShop, column_type: str, declared: str, held: str, value: str
) -> None:
    shop.sql(f"alter table warehouse add column x {column_type}")
    shop.describe(compare=f"{{x: {declared}}}", has_ledger=False, **OBSERVING)  # type: ignore[arg-type]
    made = [order | {"x": value.format(n=number)} for number, order in enumerate(orders(range(8)))]
    shop.send(made)
    shop.write("warehouse", made)
    with pytest.raises(ConfigurationError, match="which does not hold every") as caught:
        shop.ask()
    line = next(iter(caught.value.problems)).remedy.split("`")[1]
    assert line == f"x: {held}"

    shop.file.write_text(shop.file.read_text().replace(f"x: {declared}", line))
    context, closed = shop.whole_way()
    assert shop.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_moment_with_more_digits_than_its_column_is_written_and_compares_equal(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add column x timestamptz(3)")
    remedies = {"compensation": "{missing: upsert, mismatched: upsert}"}
    shop.describe(compare='{amount: "decimal(8,2)", x: timestamp(3)}', has_ledger=False, hop=remedies)
    made = [order | {"x": f"2025-03-01T00:00:00.{number}2376Z"} for number, order in enumerate(orders(range(8)))]
    shop.send(made)
    shop.write("warehouse", made[:6])
    shop.sql("update warehouse set x = x + interval '1 ms' where number = 2")
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O2": MISMATCHED,
        "O6": ("missing", "lost_after_topic"),
        "O7": ("missing", "lost_after_topic"),
    }
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.certify(context).state is WindowState.CERTIFIED
    assert shop.sql(
        "select count(*) from warehouse where x = ('2025-03-01 00:00:00.' || number || '24Z')::timestamptz"
    ) == [(8,)]
