"""Test `write` and `leave` of a hop."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import read_file

pytestmark = pytest.mark.unit

FILE = """
version: 2
pipeline: orders
compare: {{amount: int}}
points:
  outbox: {{kind: ledger, connection: db, table: ops.outbox, key: id, time: at}}
  orders: {{kind: topic, connection: kafka, topic: orders, key: "$.id"}}
  dw: {{kind: store, connection: db, table: dw.orders, key: id, time: loaded_at}}
hops:
  - {{from: outbox, to: orders{first}}}
  - {{from: orders, to: dw, compensation: {{missing: upsert}}{second}}}
"""


def problems(path: Path, first: str = "", second: str = "") -> list[tuple[str, str, str]]:
    file = path / "orders.yaml"
    file.write_text(FILE.format(first=first, second=second))
    return [(problem.path.partition(" ")[0], problem.found, problem.remedy) for problem in read_file(file).problems]


def test_columns_have_types_and_places(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(
        FILE.format(
            first="", second=", write: {note: string, loaded_at: timestamp, amount: int, id: string}, leave: [remark]"
        )
    )
    pipeline = read_file(file).pipeline
    assert pipeline is not None
    assert pipeline.hops[1].write == {"note": "string", "loaded_at": "timestamp", "amount": "int", "id": "string"}
    assert (pipeline.hops[1].leave, pipeline.hops[0].write, pipeline.hops[0].leave) == (("remark",), {}, ())


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("write: {amount: bigint}", "hops[1].write", "'amount' is compared as int, and so written"),
        ("leave: [amount]", "hops[1].leave", "'amount' is compared, and so written"),
        ("leave: [id]", "hops[1].leave", "'id' is part of the key, and so written"),
        ("write: {note: text}", "hops[1].write.note", "'text' is not a type"),
        ("write: {no-name: string}", "hops[1].write.no-name", "'no-name' is not a column name"),
        ("write: [note]", "hops[1].write", "is a list, not a mapping"),
        ("leave: []", "hops[1].leave", "is an empty list"),
        ("leave: {note: string}", "hops[1].leave", "is a mapping, not text"),
        (
            "write: {note: string}, leave: [note]",
            "hops[1].write",
            "'note' is under both 'write' and 'leave'",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, line: str, place: str, message: str) -> None:
    assert [(where, what) for where, what, _ in problems(tmp_path, second=f", {line}")] == [(place, message)]


def test_a_topic_has_no_columns(tmp_path: Path) -> None:
    text = "outbox→orders leads into a topic, which has no columns"
    assert problems(tmp_path, first=", write: {note: string}, leave: [remark]") == [
        ("hops[0].write", text, "Take the line out"),
        ("hops[0].leave", text, "Take the line out"),
    ]
