"""Test how `progress` of a hop is read, and what is wrong with it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.places.sink_progress import FILES_THEMSELVES, OffsetMeaning, SinkProgress
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: flights
points:
  outbox: {{kind: ledger, connection: airline_db, table: ops.departures, key: flight_id, time: recorded_at}}
  flights: {{kind: topic, connection: kafka_main, topic: flights, key: "$.flight_id"}}
  mirror: {{kind: topic, connection: kafka_main, topic: mirror, key: "$.flight_id"}}
  warehouse: {{kind: store, connection: warehouse_db, table: dw.departures, key: flight_id, time: loaded_at}}
hops:
  - {{from: outbox, to: flights{ledger}}}
  - {{from: flights, to: mirror{mirror}}}
  - {{from: flights, to: warehouse, consumer_group: loader{store}}}
"""


def problems_of(path: Path) -> list[str]:
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in read_file(path).problems]


def text(ledger: str = "", mirror: str = "", store: str = "") -> str:
    of = {"ledger": ledger, "mirror": mirror, "store": store}
    return FILE.format(**{name: f", progress: {value}" if value else "" for name, value in of.items()})


def test_the_offset_is_the_next_one_unless_the_file_says_otherwise(write: Callable[..., Path]) -> None:
    shortest = "{table: dw.offsets, partition: part, offset: at}"
    hop = load_pipeline(write(text(store=shortest))).hops[2]
    assert hop.progress == SinkProgress(table="dw.offsets", partition="part", offset="at", means=OffsetMeaning.NEXT)
    assert (hop.consumer_group, hop.reader) == ("loader", "the sink of warehouse (at of dw.offsets)")

    whole = "{table: dw.offsets, partition: part, offset: at, means: last, topic: t, where: \"sink = 'wh'\"}"
    assert load_pipeline(write(text(store=whole))).hops[2].progress == SinkProgress(
        table="dw.offsets", partition="part", offset="at", means=OffsetMeaning.LAST, topic="t", where="sink = 'wh'"
    )


def test_a_hop_without_offsets_or_without_a_table_has_no_progress(write: Callable[..., Path]) -> None:
    progress = "{table: dw.offsets, partition: part, offset: at}"
    assert problems_of(write(text(ledger=progress, mirror=progress))) == [
        "hops[0].progress (line 9): outbox→flights starts from a ledger, which has no offsets. Take the line out",
        "hops[1].progress (line 10): flights→mirror leads into a topic, which has no table beside it. Take the line "
        "out, and name a 'consumer_group'",
    ]


def test_each_part_that_is_wrong_is_named(write: Callable[..., Path]) -> None:
    lines = problems_of(write(text(store="{table: dw.offsets, offset: '$.a', means: done, where: sink, group: x}")))
    assert sorted(line.split(". ")[0] for line in lines) == [
        "hops[2].progress.group (line 11): is not a key here",
        "hops[2].progress.means (line 11): 'done' is not a meaning of an offset",
        "hops[2].progress.offset (line 11): '$.a' is a place in a record, not a column name",
        "hops[2].progress.partition (line 11): is missing",
        "hops[2].progress.where (line 11): 'sink' is not a condition: it stops making sense at 'sink'",
    ]


def test_the_files_of_a_dataset_say_how_far_their_writer_is(write: Callable[..., Path]) -> None:
    files = text(store="files").replace(
        "{kind: store, connection: warehouse_db, table: dw.departures, key: flight_id, time: loaded_at}",
        "{kind: dataset, connection: lake, format: parquet, path: /dw/departures, key: flight_id}",
    )
    hop = load_pipeline(write(files)).hops[2]
    assert hop.progress == FILES_THEMSELVES
    assert hop.reader == "the sink of warehouse (its files)"
    assert "'is_of_files': True" in str(configuration_document(load_pipeline(write(files))))
    table = text(store="{table: dw.offsets, partition: part, offset: at}")
    assert "is_of_files" not in str(configuration_document(load_pipeline(write(table))))


def test_a_table_has_no_files_that_say_it_and_no_other_word_is_a_progress(write: Callable[..., Path]) -> None:
    example = "for example 'progress: {table: dw.sink_offsets, partition: partition, offset: next_offset}'"
    assert problems_of(write(text(store="files"))) == [
        "hops[2].progress (line 11): flights→warehouse leads into no dataset of files. Name a table, "
        f"{example}, or a 'consumer_group'"
    ]
    assert problems_of(write(text(store="names"))) == [
        f"hops[2].progress (line 11): 'names' is no progress. Write 'progress: files', or a table: {example}"
    ]
