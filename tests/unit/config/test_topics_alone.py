"""Check which files may have topics that no hop joins, and what is judged of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.points import SEQUENCE, KeyType
from makewhole.model.verdict import Duplicates

pytestmark = pytest.mark.unit

ALONE = """\
version: 2
pipeline: flights
points:
  flights: {{kind: topic, connection: kafka_main, topic: flights{more}}}
{rest}
"""
HOPS = """\
  retry: {{kind: topic, connection: kafka_main, topic: retry{more}}}
  warehouse: {{kind: store, connection: warehouse_db, table: dw.departures, key: id}}
hops:
  - {{from: flights, to: warehouse, compensation: {{missing: redeliver}}{hop}}}
"""


def problems_of(path: Path) -> list[str]:
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in read_file(path).problems]


@pytest.mark.parametrize("rest", ["", "hops: []"])
def test_one_topic_is_a_pipeline_and_is_known_by_sequence_where_no_key_is_named(
    write: Callable[..., Path], rest: str
) -> None:
    pipeline = load_pipeline(write(ALONE.format(more="", rest=rest)))
    assert [point.name for point in pipeline.topics_alone] == ["flights"]
    assert pipeline.topic("flights").key == SEQUENCE
    assert pipeline.topic("flights").duplicates is Duplicates.REPORT
    assert (pipeline.hops, pipeline.judged_names, pipeline.indexed_points()) == ((), ("flights",), ("flights",))
    assert [point.name for point in pipeline.ordered_points()] == ["flights"]
    assert pipeline.joined_points() == (("flights",),)


def test_a_key_and_what_becomes_of_second_records_can_be_named(write: Callable[..., Path]) -> None:
    more = ", key: {$.id: bigint}, duplicates: refused"
    topic = load_pipeline(write(ALONE.format(more=more, rest=""))).topic("flights")
    assert (topic.key, topic.key_types, topic.duplicates) == (("$.id",), (KeyType.BIGINT,), Duplicates.REFUSED)


def test_a_topic_beside_hops_is_judged_alone_where_the_file_asks_for_it(write: Callable[..., Path]) -> None:
    hops = HOPS.format(more=", duplicates: report", hop="")
    pipeline = load_pipeline(write(ALONE.format(more=', key: "$.id"', rest=hops)))
    assert [point.name for point in pipeline.topics_alone] == ["retry"]
    assert pipeline.judged_names == ("flights→warehouse", "retry")
    assert pipeline.topic("flights").duplicates is None


def test_a_topic_that_remedies_write_to_is_not_judged(write: Callable[..., Path]) -> None:
    redelivered = HOPS.format(more=', key: "$.id"', hop=", redeliver_to: retry")
    pipeline = load_pipeline(write(ALONE.format(more=', key: "$.id"', rest=redelivered)))
    assert pipeline.topics_alone == ()

    both = HOPS.format(more=', key: "$.id", duplicates: report', hop=", redeliver_to: retry")
    assert problems_of(write(ALONE.format(more=', key: "$.id"', rest=both))) == [
        "points.retry (line 5): asks for the keys of retry with several records, and remedies write to it: what is in "
        "it is not judged. Take 'duplicates' out, or let the remedies write to another topic"
    ]


@pytest.mark.parametrize(
    ("more", "rest", "problem"),
    [
        (
            "",
            HOPS.format(more=', key: "$.id", duplicates: report', hop=""),
            "points.flights.key (line 4): is missing. Say what identifies a business event, one name or a list of them",
        ),
        (
            "",
            "  outbox: {kind: ledger, connection: db, table: outbox, key: id, time: at}",
            "hops (line 1): is missing. Join the points, for example '- {from: outbox, to: flights}'",
        ),
        (
            "",
            "  outbox: {kind: ledger, connection: db, table: outbox, key: id, time: at}\nhops: []",
            "hops (line 6): joins nothing. Write at least one hop, for example '- {from: outbox, to: flights}'",
        ),
        (
            ', explode: "$.lines[*]"',
            "",
            "points.flights.key (line 4): is missing. Say what identifies a business event, one name or a list of them",
        ),
        (
            ', key: "$.id"',
            HOPS.format(more=', key: "$.id"', hop=""),
            "points.retry (line 5): is joined by no hop. Join it with a hop, or take it out: nothing would look at it",
        ),
    ],
)
def test_what_has_no_second_point_or_no_key_is_refused(
    write: Callable[..., Path], more: str, rest: str, problem: str
) -> None:
    assert problems_of(write(ALONE.format(more=more, rest=rest))) == [problem]
