"""Check how a topic says that its records are known by their positions or sequences, and what it cannot have then."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.hops.suggested import suggest
from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.hops import Remedy
from makewhole.model.points import POSITION, SEQUENCE

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: flights
points:
  flights: {{kind: topic, connection: kafka_main, topic: flights, key: {key}{topic}}}
  warehouse: {{kind: store, connection: warehouse_db, table: dw.departures, key: {columns}, time: loaded_at{store}}}
{points}
hops:
  - {{from: flights, to: warehouse{hop}}}
{hops}
"""
PAIR, FOUR = "[part, pos]", "[pid, epoch, part, seq]"


def text(key: str = "position", columns: str = PAIR, **more: str) -> str:
    return FILE.format(
        **{"topic": "", "store": "", "points": "", "hop": "", "hops": "", **more}, key=key, columns=columns
    )


def problems_of(path: Path) -> list[str]:
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in read_file(path).problems]


@pytest.mark.parametrize(
    ("key", "columns", "parts"),
    [
        ("position", PAIR, POSITION),
        ("sequence", FOUR, SEQUENCE),
        ("[kafka.offset, kafka.partition]", PAIR, POSITION[::-1]),
        ("{kafka.partition: bigint, kafka.offset: decimal}", PAIR, POSITION),
    ],
)
def test_a_topic_is_keyed_by_coordinates(
    write: Callable[..., Path], key: str, columns: str, parts: tuple[str, ...]
) -> None:
    pipeline = load_pipeline(write(text(key, columns)))
    assert pipeline.points["flights"].key == parts
    assert suggest(pipeline, pipeline.hops[0], "missing").remedy is Remedy.UPSERT


@pytest.mark.parametrize("key", ["kafka.offset", "[kafka.partition, $.id]", "[kafka.producer_id, kafka.sequence]"])
def test_a_part_of_the_coordinates_names_no_record(write: Callable[..., Path], key: str) -> None:
    columns = "[a, b]" if key[0] == "[" else "a"
    (problem,) = problems_of(write(text(key, columns)))
    assert problem.endswith(
        "is neither where a record of flights lies nor how it is numbered. Write 'key: position' (kafka.partition, "
        "kafka.offset), 'key: sequence' (kafka.producer_id, kafka.producer_epoch, kafka.partition, kafka.sequence), "
        "these parts in another order, or no part of them"
    )


def test_a_column_of_a_table_may_be_called_position(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text('"$.position"', "position")))
    assert (pipeline.points["flights"].key, pipeline.points["warehouse"].key) == (("$.position",), ("position",))


MIRROR = "  mirror: {kind: topic, connection: kafka_main, topic: mirror, key: %s}"
ACKS = "  acks: {kind: ledger, connection: warehouse_db, table: dw.acks, key: [part, pos], time: at}"


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            text("kafka.value", "a"),
            "'kafka.value' is not a place in a record. Allowed: kafka.key, kafka.offset, kafka.partition",
        ),
        (text(topic=", version: kafka.offset"), "'kafka.offset' is not a place in a record"),
        (
            text(hop=", compensation: {missing: redeliver}"),
            "'redeliver' is not possible for missing keys from a topic to a store whose key is its coordinates: a "
            "record that is sent again has others. Allowed: report, upsert",
        ),
        (text(hop=", compensation: {vanished: redeliver}"), "'redeliver' is not possible for vanished keys"),
        (
            text(points=ACKS, hops="  - {from: acks, to: flights, compensation: {missing: produce}}"),
            "'produce' is not possible for missing keys from a ledger to a topic whose key is its coordinates",
        ),
        (
            text(hop=", semantics: upsert"),
            "'semantics: upsert' orders the versions of a key, and each key of flights is one record",
        ),
        (
            text(points=MIRROR % "position", hops="  - {from: flights, to: mirror}"),
            "no record of flights has its coordinates in mirror: it gets them there",
        ),
        (
            text("['header:p', 'header:o']", points=MIRROR % "position", hops="  - {from: flights, to: mirror}"),
            "no record of flights has its coordinates in mirror: it gets them there",
        ),
        (
            text(points=MIRROR % "position", hops="  - {from: mirror, to: warehouse}"),
            "flights and mirror fill one table by coordinates, which are the same in both",
        ),
        (
            text(store=", erased: tombstones"),
            "the key of flights is its coordinates (kafka.partition, kafka.offset), and a tombstone has its own",
        ),
        (
            text(
                '["$.a", "$.b"]',
                points=MIRROR % "position",
                hop=", compensation: {missing: redeliver}, redeliver_to: mirror",
            ),
            "what is written to mirror gets its coordinates, by which its records are known, from the broker",
        ),
    ],
)
def test_what_coordinates_cannot_do_is_refused(write: Callable[..., Path], file: str, message: str) -> None:
    (problem,) = problems_of(write(file))
    assert message in problem


def test_a_copy_is_known_by_the_position_that_it_carries(write: Callable[..., Path]) -> None:
    mirrored = MIRROR % "['header:partition', 'header:offset']"
    pipeline = load_pipeline(write(text(points=mirrored, hops="  - {from: flights, to: mirror}")))
    (_, hop) = pipeline.hops
    assert suggest(pipeline, hop, "missing").does == (
        "a record that is sent into flights again has other coordinates, and is another key"
    )
