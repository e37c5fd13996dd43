"""Test that a bad file reports everything that is wrong with it at once, each with its place and what to write
instead."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


def problems_of(path: Path) -> list[str]:
    """Return the messages about a file, without its folder."""
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    assert {problem.file for problem in caught.value.problems} == {str(path)}
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in caught.value.problems]


def test_ten_mistakes_give_ten_messages_each_with_place_and_remedy(write: Callable[..., Path]) -> None:
    path = write("""\
version: 2
pipeline: Flights
schedule: "0 25 * * *"
compare: {tailnum: strng}
points:
  outbox: {kind: ledger, conection: x, connection: airline_db, table: ops.departures, key: id, time: recorded_at}
  flights: {kind: topic, connection: kafka_main, topic: flights, key: id}
  warehouse: {kind: store, connection: warehouse_db, table: "departures; drop table x", key: id}
hops:
  - {from: outbox, to: flight}
  - {from: flights, to: warehouse, where: "cancelled == false", compensation: {duplicate: redeliver}}
compensation:
  limits: {share: 1.5}
""")
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    assert str(caught.value).replace(str(path), "F").splitlines() == [
        "F: pipeline (line 2): 'Flights' is not a name. Begin with a small letter, go on with small letters, digits "
        "and "
        "'_', for example 'daily_flights'",
        "F: schedule (line 3): '0 25 * * *' is not a schedule: hour '25' is wrong. Use numbers from 0 to 23, '*', "
        "lists, "
        "ranges and steps, for example '0 2 * * *' for every day at 02:00 UTC",
        "F: compare.tailnum (line 4): 'strng' is not a type. Allowed: bigint, boolean, date, decimal(p,s), double, "
        "int, json, "
        "string, timestamp, timestamp(p). Did you mean 'string'?",
        "F: points.outbox.conection (line 6): is not a key here. Allowed: columns, connection, headers, key, kind, "
        "leave_fields, leave_headers, payload, record_key, table, time, version. Did you mean 'connection'?",
        "F: points.flights.key (line 7): 'id' is not a place in a record. Write '$.field' (with further '.field' "
        "inside "
        "it), 'kafka.key' or 'header:NAME'. Did you mean '$.id'?",
        "F: points.warehouse.table (line 8): 'departures; drop table x' is not a safe table name. Write 'table' or "
        "'schema.table', each of letters, digits and '_', not beginning with a digit; put any other name in quotation "
        "marks as in SQL: 'shop.\"Out.Box\"'",
        "F: hops[0].to (line 10): 'flight' is not a point of this pipeline. Allowed: flights, outbox, warehouse. Did "
        "you "
        "mean 'flights'?",
        "F: hops[1].where (line 11): 'cancelled == false' is not a condition: it stops making sense at 'cancelled == "
        "false'. Write terms joined by `and`: `column = literal`, also with !=, <, <=, > or >=; `column in (literal, "
        "literal)` or `not in`; `column is null` or `is not null`. A literal is a number, true, false or 'text in "
        "single quotes'",
        "F: hops[1].compensation.duplicate (line 11): 'redeliver' is not possible for duplicate keys from a topic to a "
        "store. Allowed: quarantine, report, reverse",
        "F: compensation.limits.share (line 13): 1.5 is not between 0 and 1. Write a share from 0 to 1; 0.01 is one in "
        "a "
        "hundred",
    ]
    assert len(caught.value.problems) == 10


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("version: 2\n", "", ["version (line 1): is missing. Write 'version: 2'"]),
        ("version: 2", "version: 3", [
            "version (line 1): is 3, which this makewhole does not read. Write 'version: 2'"
        ]),
        ("version: 2", "version: 0", [
            "version (line 1): is 0, which this makewhole does not read. Write 'version: 2'"
        ]),
        ("version: 2", 'version: "1"', ["version (line 1): is text, not a whole number. Take the quotes off"]),
        ("pipeline: flights", "pipeline:", [
            "pipeline (line 2): has no value. Name the pipeline, for example 'pipeline: daily_flights'"
        ]),
        ("version: 2", "version: 2\nversion: 2", [
            "version (line 2): is written twice (first in line 1). Keep one of the two"
        ]),
        ("version: 2", "version: 2\nshedule: x", [
            "shedule (line 2): is not a key here. Allowed: access, compare, compensation, description, gate, history, "
            "hops, keep, late, mask, notify, pending, pipeline, points, reach, retry_for, schedule, self_check, "
            "settle, start, time_limits, until, version. Did you mean 'schedule'?"
        ]),
        ("version: 2", "version: 2\nhistory: 12h", [
            "history (line 2): '12h' is no history. Write a duration from '1d' on, for example '400d'"
        ]),
        ("version: 2", "version: 2\nhistory: 2d\nlate: 36h", [
            "history (line 2): is less than `late` and `pending.max_age` together (60h), as far back as keys may be "
            "late. Write at least '60h', or leave the line out: then keys are known for ever"
        ]),
        ("version: 2", "version: 2\nreach: ledger", [
            "reach (line 2): 'ledger' is not a reach to accept. Write 'reach: log' to accept that windows are proven "
            "from the log on, or take the line out",
            "reach (line 2): accepts that the log alone is proven, and every chain of hops begins at a ledger. Take "
            "the line out: every window is proven from the ledger on",
        ]),
        ("version: 2", "version: 2\npending: {max_age: 0s, min_age: 1h}", [
            "pending.min_age (line 2): is not a key here. Allowed: max_age. Did you mean 'max_age'?",
            "pending.max_age (line 2): '0s' is no time at all. Write a duration above zero, for example '4h'",
        ]),
        ("version: 2", "version: 2\ngate: {tolerance: {pending: -1}}", [
            "gate.tolerance.pending (line 2): -1 is too small. Write a whole number of 0 or more"
        ]),
        ("kind: store", "kind: stor", [
            "points.warehouse.kind (line 6): 'stor' is not a kind of point. Allowed: dataset, ledger, store, topic. "
            "Did you mean 'store'?"
        ]),
        (", time: recorded_at", "", [
            "points.outbox.time (line 4): is missing. Name the column that says when a row was recorded"
        ]),
        ("key: flight_id}", "key: [flight_id, flight_id]}", [
            "points.warehouse.key[1] (line 6): 'flight_id' is named twice. Name it once",
        ]),
        ("key: flight_id}", "key: [a, b]}", [
            "hops[1] (line 9): flights→warehouse joins a key of 1 to a key of 2 parts. Give both points the same parts "
            "of the business key, in the same order"
        ]),
        ("key: flight_id}", "key: []}", ["points.warehouse.key (line 6): is an empty list. Name at least one"]),
        ("connection: kafka_main", "connection: {a: 1}", [
            "points.flights.connection (line 5): is a mapping, not text. Write text"
        ]),
        ("warehouse: {", "Ware-house: {", [
            "points.Ware-house (line 6): 'Ware-house' is not a name. Begin with a small letter, go on with small "
            "letters, digits and '_', for example 'daily_flights'",
            "hops[1].to (line 9): 'warehouse' is not a point of this pipeline. Allowed: Ware-house, flights, outbox. "
            "Did "
            "you mean 'Ware-house'?",
        ]),
        ("  - {from: flights, to: warehouse}\n", "", [
            "points.warehouse (line 6): is joined by no hop. Join it with a hop, or take it out: nothing would look at "
            "it"
        ]),
        ("  - {from: flights, to: warehouse}", "  - {from: flights, to: warehouse}\n" * 2, [
            "hops[2] (line 10): flights→warehouse is there twice (first in line 9). Keep one of the two"
        ]),
        ("  - {from: outbox, to: flights}", "  - {from: flights, to: outbox}", [
            "hops[0] (line 8): flights→outbox leads into a ledger. A ledger is where events begin: turn the hop round, "
            "or make it a store"
        ]),
        ("{from: outbox, to: flights}", "{from: outbox, to: flights, consumer_group: g}", [
            "hops[0].consumer_group (line 8): outbox→flights starts from a ledger, which no consumer group reads. Take "
            "the line out"
        ]),
        ("{from: outbox, to: flights}", "{from: outbox, to: flights, compensation: {missing: redeliver}}", [
            "hops[0].compensation.missing (line 8): 'redeliver' is not possible for missing keys from a ledger to a "
            "topic. Allowed: produce, report"
        ]),
        ("{from: outbox, to: flights}", "{from: outbox, to: flights, compensation: {missing: upsert}}", [
            "hops[0].compensation.missing (line 8): 'upsert' is not possible for missing keys from a ledger to a "
            "topic. "
            "Allowed: produce, report"
        ]),
        ("{from: outbox, to: flights}", "{from: outbox, to: flights, compensation: {duplicate: quarantine}}", [
            "hops[0].compensation.duplicate (line 8): 'quarantine' is not possible for duplicate keys from a ledger to "
            "a "
            "topic. Allowed: report, reverse"
        ]),
        ("{from: flights, to: warehouse}", "{from: flights, to: warehouse, compensation: {missing: produce}}", [
            "hops[1].compensation.missing (line 9): 'produce' is not possible for missing keys from a topic to a "
            "store. "
            "Allowed: redeliver, report, upsert"
        ]),
        ("{from: flights, to: warehouse}", "{from: flights, to: warehouse, semantics: upsert}", [
            "points.flights (line 5): has hops of both semantics (outbox→flights event, flights→warehouse upsert). "
            "Several records of one key are either its versions or repetitions: give all its hops the same one"
        ]),
        ("{from: flights, to: warehouse}", "{from: flights, to: warehouse, compensation: {mismatched: redeliver}}", [
            "hops[1].compensation.mismatched (line 9): 'redeliver' is not possible for mismatched keys from a topic to "
            "a store without a version: a loader that inserts would add a row. Allowed: report, upsert"
        ]),
        ("{from: outbox, to: flights}", "{from: outbox, to: flights, semantics: upserts}", [
            "hops[0].semantics (line 8): 'upserts' is not a semantics. Allowed: event, upsert. Did you mean 'upsert'?"
        ]),
        ("version: 2", "version: 2\ncompensation: {duplicate: produce}", [
            "compensation.duplicate (line 2): 'produce' is possible for duplicate keys on no hop of this pipeline. "
            "Allowed: quarantine, report, reverse"
        ]),
        ("version: 2", "version: 2\ncompensation: {limits: {actions: -1, records_per_second: 0}}", [
            "compensation.limits.actions (line 2): -1 is too small. Write a whole number of 0 or more",
            "compensation.limits.records_per_second (line 2): 0 is too small. Write a whole number of 1 or more",
        ]),
        ("version: 2", "version: 2\ncompensation: {approval: {expires: 0h}}", [
            "compensation.approval.expires (line 2): '0h' is no time at all. Write a duration above zero, for example "
            "'4h'"
        ]),
        ("version: 2", "version: 2\ngate: {allow_empty: maybe}", [
            "gate.allow_empty (line 2): 'maybe' is neither true nor false. Write true or false"
        ]),
        ("version: 2", "version: 2\nstart: yesterday", [
            "start (line 2): 'yesterday' is not a start. Write 'earliest', 'latest' or a time such as "
            "'2013-01-01T00:00:00Z'"
        ]),
        ("version: 2", "version: 2\nuntil: latest", [
            "until (line 2): 'latest' is not a time. Write a time such as '2013-01-01T00:00:00Z'"
        ]),
        ("version: 2", "version: 2\nuntil: 2014", [
            "until (line 2): '2014' is not a time. Write a time such as '2013-01-01T00:00:00Z'"
        ]),
        ("version: 2", "version: 2\nuntil:", [
            "until (line 2): has no value. Give it one, or take the line out to have the default"
        ]),
        ("version: 2", "version: 2\ndescription: 2013", [
            "description (line 2): is a number, not text. Put it in quotes"
        ]),
        ("version: 2", 'version: 2\ncompare: {a: "decimal(39,1)", b: "decimal(3,4)"}', [
            "compare.a (line 2): 'decimal(39,1)' is not a possible decimal. Write decimal(p,s) with p from 1 to 38 and "
            "s "
            "from 0 to p",
            "compare.b (line 2): 'decimal(3,4)' is not a possible decimal. Write decimal(p,s) with p from 1 to 38 and "
            "s "
            "from 0 to p",
        ]),
    ],
)  # fmt: skip
def test_each_mistake_is_named(
    write: Callable[..., Path], old: str, new: str, messages: list[str], minimal: str
) -> None:
    assert old in minimal
    assert sorted(problems_of(write(minimal.replace(old, new, 1)))) == sorted(messages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: is empty. Describe a pipeline in it; docs/pipeline-file.md has an example"),
        ("# nothing\n", "line 1: is empty. Describe a pipeline in it; docs/pipeline-file.md has an example"),
        ("just words", "line 1: is text, not a mapping. Write 'key: value' lines below it, or {key: value}"),
        (
            "a: [1\nb: 2\n",
            "line 2: is not YAML (did not find expected ',' or ']'). Mend the syntax at this line or above",
        ),
        (b"\xff\xfe\x00", "line 1: is not UTF-8 text. Save it as YAML in UTF-8"),
        ("a: \x01", "line 1: is not YAML (it has forbidden characters). Save it as plain text in UTF-8"),
        (
            "a: 1\n---\nb: 2\n",
            "line 2: is not YAML (but found another document). Mend the syntax at this line or above",
        ),
    ],
)
def test_a_file_that_is_no_pipeline_file_says_so(write: Callable[..., Path], text: str | bytes, message: str) -> None:
    assert problems_of(write(text)) == [message]


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "none.yaml") == [
        "line 1: cannot be read (No such file or directory). Name a file that exists and may be read"
    ]


def test_aliases_without_end_are_refused(write: Callable[..., Path], minimal: str) -> None:
    remedy = "once its aliases (`*name`) are written out. Write out what the aliases stand for"
    ten = "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 9))

    for text, message in [
        ("gate: &a {tolerance: *a}\n", "holds itself"),
        (f"a0: &a0 [x]\n{ten}", "is too large or too deep"),
        ("a0: &a0 [x]\n" + "".join(f"a{at}: &a{at} [*a{at - 1}]\n" for at in range(1, 30)), "is too large or too deep"),
    ]:
        assert problems_of(write(minimal + text)) == [f"line 1: {message} {remedy}"]


def test_a_number_of_thousands_of_digits_is_refused(write: Callable[..., Path], minimal: str) -> None:
    text = minimal.replace("version: 2", f"version: {'9' * 5000}")

    assert [problem.split(" (")[0] for problem in problems_of(write(text))] == ["version"]


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "- " * 100_000, "{a: " * 50_000 + "}" * 50_000])
def test_nesting_without_end_does_not_take_the_process_along(write: Callable[..., Path], text: str) -> None:
    assert problems_of(write(text)) == ["line 1: is nested more than 20 deep. A pipeline file has five levels at most"]


def test_a_circle_of_topics_is_named(write: Callable[..., Path]) -> None:
    text = """\
version: 2
pipeline: round
points:
  a: {kind: topic, connection: k, topic: a, key: kafka.key}
  b: {kind: topic, connection: k, topic: b, key: kafka.key}
hops: [{from: a, to: b}, {from: b, to: a}, {from: a, to: a}]
"""
    assert problems_of(write(text)) == [
        "hops[1] (line 6): closes the circle a→b→a. Take one of these hops out: events go one way",
        "hops[2] (line 6): closes the circle a→a. Take one of these hops out: events go one way",
    ]


def test_a_time_limit_that_no_step_can_have_is_refused_with_its_place(write: Callable[..., Path], minimal: str) -> None:
    text = minimal + "retry_for: often\ntime_limits: {snapshot: 30s, reconcile: 30d, compare: 1h}\n"
    assert problems_of(write(text)) == [
        "retry_for (line 10): 'often' is not a duration. Write a whole number and one of s, m, h, d, for example '5m'",
        "time_limits.compare (line 11): is not a key here. Allowed: certify, compensate, open_window, plan, reconcile, "
        "snapshot, validate, verify",
        "time_limits.snapshot (line 11): '30s' is no time limit for a step. Write a duration from '1m' to '21d'",
        "time_limits.reconcile (line 11): '30d' is no time limit for a step. Write a duration from '1m' to '21d'",
    ]
