"""Check how a pipeline file names the columns of its points, and what is wrong about it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.places.compared_columns import compared_at, compared_everywhere
from makewhole.model.points import Erased, PointKind, TablePoint, TopicPoint, names_of_table
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256
from makewhole.window.context import table_shape, value_shape

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: shop
compare: {amount: "decimal(10,2)"}
points:
  outbox: {kind: ledger, connection: db, table: 'shop."Out.Box"', key: "Nr.", time: At TimeOUTBOX}
  log: {kind: topic, connection: k, topic: log, key: "$.order.id"LOG}
  store: {kind: store, connection: db, table: dw.orders, key: idSTORE}
hops: [{from: outbox, to: log, where: live = trueFIRST}, {from: log, to: storeSECOND}]
"""
OUTBOX = ', columns: {amount: "Total Amount", live: "x\\"; drop"}'
LOG = ', columns: {amount: "$.order.total"}'
STORE = ", columns: {amount: total_amount}"


def text(
    outbox: str = OUTBOX, log: str = LOG, store: str = STORE, *, first: str = "", second: str = "", file: str = FILE
) -> str:
    wanted = {"OUTBOX": outbox, "LOG": log, "STORE": store, "FIRST": first, "SECOND": second}
    for name, value in wanted.items():
        file = file.replace(name, value)
    return file


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_each_point_has_a_name_of_its_own_for_a_column(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text()))

    outbox, log, store = pipeline.table("outbox"), pipeline.topic("log"), pipeline.table("store")
    assert outbox.table_names == ("shop", "Out.Box")
    assert (outbox.key, outbox.time) == (("Nr.",), "At Time")
    assert (outbox.column_place("amount"), outbox.column_place("live")) == ("Total Amount", 'x"; drop')
    assert outbox.column_name("Total Amount") == "amount"
    assert (log.column_place("amount"), log.column_place("other")) == ("$.order.total", "$.other")
    assert (store.column_place("amount"), store.column_place("id")) == ("total_amount", "id")
    assert dict(value_shape(pipeline, log).places) == {"amount": "$.order.total"}
    assert table_shape(pipeline, outbox).compare == {"amount": "decimal(10,2)"}


def test_a_file_without_columns_is_written_down_as_ever(write: Callable[..., Path]) -> None:
    plain = load_pipeline(write(text("", "", "", file=FILE.replace("where: live = true", "where: live = true"))))
    same = load_pipeline(write(text(", columns: {amount: amount}", ', columns: {amount: "$.amount"}', ""), "same.yaml"))

    assert plain.points == same.points
    assert "columns" not in str(configuration_document(plain))
    assert compared_at(plain, "log") == plain.compare == compared_everywhere(plain)


def test_another_place_of_a_column_is_another_reading(write: Callable[..., Path]) -> None:
    first, other = (load_pipeline(write(text(store=f", columns: {{amount: {name}}}"), f"{name}.yaml")) for name in "ab")

    assert judging_sha256(first) != judging_sha256(other)
    assert reading_sha256(first) != reading_sha256(other)
    assert compared_at(first, "store") == {"amount": "decimal(10,2) at store: a"}
    assert compared_at(first, "log") == compared_at(other, "log") == {"amount": "decimal(10,2) at log: $.order.total"}
    assert compared_everywhere(first) != compared_everywhere(other)
    assert first.points["store"].written_place == "db:dw.orders (amount: a)"


def test_a_column_that_is_key_or_time_has_one_name_everywhere(write: Callable[..., Path]) -> None:
    file = FILE.replace("{amount:", "{number: string, since: timestamp, amount:")
    outbox = (
        ', columns: {number: "Nr.", since: At Time, amount: b, live: c}, payload: body, headers: {h: c, g: "\'x\'"}'
    )
    store = ", time: t, version: v, erased: {column: e}, columns: {number: id, since: t, amount: e}"

    pipeline = load_pipeline(write(text(outbox, store=store, file=file)))

    ledger, table = pipeline.table("outbox"), pipeline.table("store")
    assert (ledger.key, ledger.time, ledger.payload) == (("number",), "since", "body")
    assert ledger.headers == (("h", "live"), ("g", "'x'"))
    assert (table.key, table.time, table.version, table.erased) == (("number",), "since", "v", Erased(column="amount"))
    physical = table.in_table
    assert (physical.key, physical.time, physical.erased) == (("id",), "t", Erased(column="e"))
    assert physical.columns == ()
    assert (table.key_places, table.version_place) == (("id",), "v")


def test_a_column_whose_own_name_stands_for_another_is_distinguished_from_it() -> None:
    point = TablePoint(
        name="s",
        kind=PointKind.STORE,
        connection="db",
        table="t",
        key=("id",),
        columns=(("amount", "total"),),
    )

    assert [point.column_name(name) for name in ("total", "amount", "other")] == ["amount", '"amount"', "other"]
    assert [point.column_place(name) for name in ("amount", '"amount"', "other")] == ["total", "amount", "other"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"log": ', columns: {amount: "$.order.total", unit: "$.order.unit"}'},
            "points.log.columns.unit (line 6): is a column that nothing uses. Name it under 'compare', or in a 'where' "
            "or 'write' of a hop of log, or take the line out",
        ),
        (
            {"store": ", columns: {amount: total, no-name: x}"},
            "points.store.columns.no-name (line 7): 'no-name' is not a column name. Use letters, digits and '_', not "
            "beginning with a digit, 63 at most",
        ),
        (
            {"log": ", columns: {amount: total}"},
            "points.log.columns.amount (line 6): 'total' is not a place in a record. Write '$.field' (with further "
            "'.field' inside it), 'kafka.key' or 'header:NAME'. Did you mean '$.total'?",
        ),
        (
            {"store": ', columns: {amount: "$.total"}'},
            "points.store.columns.amount (line 7): '$.total' is a place in a record, not a column name. Name a column "
            "of the table",
        ),
        (
            {"store": """, columns: {amount: '"Total Amount"'}"""},
            """points.store.columns.amount (line 7): '"Total Amount"' is not a column name: the quotation marks are """
            "part of it. Write the name as it is, capitals and spaces as they are: 'Total Amount'",
        ),
        (
            {"store": f", columns: {{amount: {'ü' * 32}}}"},
            f"points.store.columns.amount (line 7): '{'ü' * 32}' is not a column name. Use 1 to 63 bytes, none of them "
            "zero",
        ),
        (
            {"store": ", columns: {amount: total, live: total}", "second": ", where: live = true"},
            "points.store.columns.live (line 7): is the column 'total', as 'amount' is. Name each column once",
        ),
        (
            {"store": ", columns: {amount: total}, time: amount"},
            "points.store.columns.amount (line 7): is the column 'total', and this point has another one of that name. "
            "Give it another name in the file, here and wherever 'amount' is used",
        ),
        (
            {"outbox": ", columns: {amount: live}"},
            "points.outbox.columns.amount (line 5): is the column 'live' of shop.\"Out.Box\", which the file names "
            "'live' elsewhere. Use one name for a column in the whole file",
        ),
    ],
)
def test_what_is_wrong_is_named(write: Callable[..., Path], changed: dict[str, str], problem: str) -> None:
    assert problem in problems_of(write(text(**changed)))


PRODUCE = ", compensation: {missing: produce}"
BUILT = (
    "Name a column that holds the whole value under 'payload' at points.outbox, or report what is missing on outbox→log"
)


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ('"$.order.id"', None),
        ('"$.order"', "have amount at $.order and Nr. at $.order.id"),
        ('"$.order.id.net"', "have Nr. at $.order.id and amount at $.order.id.net"),
        ("header:amount", "not have amount at header:amount"),
        ("kafka.key", "not have amount at kafka.key"),
    ],
)
def test_a_topic_whose_records_cannot_be_made_of_a_row_is_refused_where_they_are_produced(
    write: Callable[..., Path], log: str, problem: str | None
) -> None:
    place = '"$.total"' if problem is None else log
    file = text(log=f", columns: {{amount: {place}}}", first=PRODUCE)
    if problem is None:
        load_pipeline(write(file))
    else:
        cannot = f"cannot {problem}" if problem.startswith("have") else f"would {problem}"
        made = f"a record that `produce` makes of a row of outbox {cannot}"
        assert problems_of(write(file)) == [f"points.log.columns.amount (line 6): {made}. {BUILT}"]
        load_pipeline(write(text(log=f", columns: {{amount: {place}}}"), "observed.yaml"))
        with_payload = text(OUTBOX + ", payload: body", f", columns: {{amount: {place}}}", first=PRODUCE)
        load_pipeline(write(with_payload, "payload.yaml"))


@pytest.mark.parametrize(
    ("headers", "place"),
    [("headers: {amount: Total Amount}", "header:amount"), ("record_key: Total Amount", "kafka.key")],
)
def test_a_column_in_a_header_or_the_key_is_made_of_the_row_that_names_it(
    write: Callable[..., Path], headers: str, place: str
) -> None:
    log = f", columns: {{amount: {place}}}"

    point = load_pipeline(write(text(f"{OUTBOX}, {headers}", log, first=PRODUCE))).points["log"]

    assert isinstance(point, TopicPoint) and point.columns == (("amount", place),)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("t", ("t",)),
        ("s.t", ("s", "t")),
        ('s."Out.Box"', ("s", "Out.Box")),
        ('"My S"."a""b"', ("My S", 'a"b')),
        ('"."', (".",)),
    ],
)
def test_a_table_is_named_as_in_sql(write: Callable[..., Path], name: str, names: tuple[str, ...]) -> None:
    assert names_of_table(name) == names
    file = text(file=FILE.replace("table: dw.orders", f"table: '{name}'"))
    assert load_pipeline(write(file)).table("store").table_names == names


@pytest.mark.parametrize(
    "name",
    [
        "a.b.c",
        "",
        ".t",
        "s.",
        's."',
        '""',
        '"a"b',
        'a"b"',
        "a b",
        "1t",
        "s..t",
        '"a".',
        "t; drop",
        '"' + "x" * 64 + '"',
    ],
)
def test_what_is_no_name_of_a_table_is_refused(write: Callable[..., Path], name: str) -> None:
    assert problems_of(write(text(file=FILE.replace("table: dw.orders", f"table: '{name}'"))))
