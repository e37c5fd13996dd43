"""Test `mask`: which columns may be masked, and what is refused beside them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256

pytestmark = pytest.mark.unit

OUTBOX = "  outbox: {kind: ledger, connection: db, table: ops.departures, key: flight_id, time: recorded_at}\n"
FILE = """\
version: 2
pipeline: flights
compare: {delay: int, pilot: string}
mask: [pilot, seat]
points:
  outbox: {kind: ledger, connection: db, table: ops.departures, key: flight_id, time: recorded_at}
  flights: {kind: topic, connection: log, topic: flights, key: "$.flight_id"}
  warehouse: {kind: store, connection: db, table: dw.departures, key: flight_id, time: at}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: warehouse, write: {seat: string}}
"""


def problem_of(write: Callable[..., Path], *changes: tuple[str, str]) -> str:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(ConfigurationError) as refused:
        load_pipeline(write(text))
    (problem,) = refused.value.problems
    assert problem.path in {"mask (line 4)", "mask[1] (line 4)"}
    return f"{problem.found}. {problem.remedy}"


def test_a_mask_is_read_and_decides_no_verdict(write: Callable[..., Path]) -> None:
    masked = load_pipeline(write(FILE))
    without = load_pipeline(write(FILE.replace("mask: [pilot, seat]\n", "")))

    assert (masked.mask, without.mask) == (("pilot", "seat"), ())
    assert judging_sha256(masked) == judging_sha256(without)
    assert reading_sha256(masked) == reading_sha256(without)
    assert configuration_document(masked)["mask"] == ["pilot", "seat"]
    assert "mask" not in configuration_document(without)


@pytest.mark.parametrize(
    ("column", "change", "points"),
    [
        ("flight_id", ("x", "x"), "outbox"),
        ("recorded_at", ("x", "x"), "outbox"),
        ("at", ("x", "x"), "warehouse"),
        ("body", ("time: recorded_at", "time: recorded_at, payload: body"), "outbox"),
        ("number", ('key: "$.flight_id"', 'key: "$.flight_id", version: "$.number"'), "flights"),
        ("nummer", ("time: at", "time: at, version: number, columns: {nummer: number}"), "warehouse"),
    ],
)
def test_what_rows_are_found_ordered_or_made_by_is_not_masked(
    write: Callable[..., Path], column: str, change: tuple[str, str], points: str
) -> None:
    old, new = change
    with pytest.raises(ConfigurationError) as refused:
        load_pipeline(
            write(
                FILE.replace(old, new)
                .replace("compare: {delay: int", f"compare: {{delay: int, {column}: string")
                .replace("mask: [pilot, seat]", f"mask: [{column}]")
            )
        )
    messages = [problem.found for problem in refused.value.problems if problem.path.startswith("mask")]
    assert messages[0] == (
        f"names '{column}', by which {points} finds, orders or makes its rows or records: it is shown with each of them"
    )


def test_a_column_that_nothing_compares_or_writes_is_a_mistake(write: Callable[..., Path]) -> None:
    assert problem_of(write, ("[pilot, seat]", "[pilot, pilto]")) == (
        "names 'pilto', which nothing compares or writes, so that no value of it is kept or shown. "
        "Name a column of `compare` or of a hop's `write`: delay, pilot, seat"
    )
    assert problem_of(write, ("[pilot, seat]", "[pilot, pilot]")) == "'pilot' is named twice. Name it once"


def test_what_carries_values_on_is_refused_beside_a_mask(write: Callable[..., Path]) -> None:
    assert problem_of(write, ('key: "$.flight_id"', 'key: "$.flight_id", publish: {path: /once}')) == (
        "does not reach what flights publishes: it has every value in clear. "
        "Take `publish` out of flights, or the line with `mask`"
    )
    reverse = "write: {seat: string}, compensation: {duplicate: reverse}, reverse: {to: log, value: {id: '{{ key }}'}}"
    assert problem_of(
        write,
        ("write: {seat: string}", reverse),
        ("  warehouse:", '  log: {kind: topic, connection: log, topic: log, key: "$.id"}\n  warehouse:'),
    ) == (
        "does not reach the events that flights→warehouse sends to take copies back (`reverse`): they are made of "
        "values, which the journal then has. Take `reverse` out of the hop, or the line with `mask`"
    )
    assert (
        problem_of(
            write,
            (
                "hops:",
                '  events: {kind: topic, connection: log, topic: events, key: "$.id", duplicates: report}\nhops:',
            ),
        )
        == "is for hops, and events is judged alone (`duplicates`). Take the line with `mask` out"
    )


def test_a_dataset_is_refused_beside_a_mask(write: Callable[..., Path]) -> None:
    dataset = "kind: dataset, format: iceberg, connection: lake, table: dw.departures"
    assert problem_of(write, ("kind: store, connection: db, table: dw.departures", dataset)) == (
        "is for topics and tables of a database, and warehouse is a dataset. Take the line with `mask` out"
    )


def test_sums_are_not_masked(write: Callable[..., Path]) -> None:
    grouped = "hops: [{from: flights, to: warehouse, group: {identity: leg, sums: {delay: int}}}]\n"
    text = FILE[: FILE.index("hops:")].replace(OUTBOX, "") + grouped
    with pytest.raises(ConfigurationError) as refused:
        load_pipeline(write(text.replace("[pilot, seat]", "[delay]")))
    assert [f"{problem.found}. {problem.remedy}" for problem in refused.value.problems] == [
        "hides what flights→warehouse adds up (`group`), and sums have to be shown to be explained. "
        "Take the column out of `mask`"
    ]
