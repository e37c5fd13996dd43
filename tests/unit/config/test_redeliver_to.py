"""Test `redeliver_to`: redelivered records go to a replay topic, which no hop need join."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: flights
points:
  outbox: {kind: ledger, connection: db, table: ops.departures, key: flight_id, time: recorded_at}
  flights: {kind: topic, connection: log, topic: flights, key: "$.flight_id"}
  delays: {kind: topic, connection: log, topic: delays, key: "$.flight_id"}
  retry: {kind: topic, connection: log, topic: flights-retry, key: "$.flight_id"}
  legs: {kind: topic, connection: log, topic: legs, key: ["$.flight_id", "$.leg"]}
  warehouse: {kind: store, connection: db, table: dw.departures, key: flight_id}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: delays}
  - {from: flights, to: warehouse}
compensation: {missing: redeliver}
"""


BACK = ", redeliver: {to: source}"


def text(*, into_log: str = "", onward: str = BACK, into_store: str = BACK) -> str:
    changed = FILE.replace("to: flights}", f"to: flights{into_log}}}").replace("to: delays}", f"to: delays{onward}}}")
    changed = changed.replace("to: warehouse}", f"to: warehouse{into_store}}}")
    lines = changed.splitlines(keepends=True)
    return "".join(line for line in lines if "legs" in into_store or "legs" not in line)


def test_a_replay_topic_is_a_point_that_no_hop_joins_and_that_is_never_compared(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text(into_store=", redeliver_to: retry")))

    assert [hop.redeliver_to for hop in pipeline.hops] == [None, None, "retry"]
    assert "retry" in pipeline.points
    assert [point.name for point in pipeline.ordered_points()] == ["outbox", "flights", "delays", "warehouse"]


RETRY = "points.retry (line 7): is joined by no hop. Join it with a hop, or take it out: nothing would look at it"


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        ({}, [RETRY]),
        (
            {"into_store": ", redeliver_to: retri"},
            [
                "hops[2].redeliver_to (line 12): 'retri' is not a point of this pipeline. Allowed: delays, flights, "
                "retry. Did you mean 'retry'?"
            ],
        ),
        (
            {"into_store": ", redeliver_to: outbox"},
            [
                "hops[2].redeliver_to (line 12): 'outbox' is a ledger, and records go to topics. Allowed: delays, "
                "flights, retry"
            ],
        ),
        (
            {"into_store": ", redeliver_to: [retry]"},
            ["hops[2].redeliver_to (line 12): is a list, not text. Write text"],
        ),
        (
            {"into_store": ", redeliver_to: null"},
            [
                RETRY,
                "hops[2].redeliver_to (line 12): has no value. Give it one, or take the line out to have the default",
            ],
        ),
        (
            {"into_log": ", redeliver_to: retry"},
            [
                "hops[0].redeliver_to (line 10): outbox→flights starts from a ledger, which redelivers nothing. Take "
                "the line out"
            ],
        ),
        (
            {"onward": ", redeliver_to: retry", "into_store": ", redeliver_to: flights"},
            [
                "hops[2].redeliver_to (line 12): 'flights' is where the hop starts, which is the default. Take the "
                "line out"
            ],
        ),
        (
            {"onward": ", redeliver_to: delays", "into_store": ", redeliver_to: retry"},
            [
                "hops[1].redeliver_to (line 11): 'delays' is where the hop ends: what stands between would never see "
                "the record. Name a topic that the consumer of this hop reads"
            ],
        ),
        (
            {"into_store": ", redeliver_to: retry, compensation: {missing: upsert}"},
            [
                "hops[2].redeliver_to (line 12): no verdict of flights→warehouse is answered by redeliver. Write "
                "'missing: redeliver' in its compensation, or take the line out"
            ],
        ),
        (
            {"onward": ", redeliver_to: retry", "into_store": ", redeliver_to: legs"},
            [
                "hops[2].redeliver_to (line 13): legs has a key of 2 and flights one of 1 parts. Give both points the "
                "same parts of the business key, in the same order"
            ],
        ),
    ],
)
def test_a_replay_topic_that_cannot_be_one_is_refused(
    write: Callable[..., Path], changed: dict[str, str], messages: list[str]
) -> None:
    path = write(text(**changed))
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)

    assert [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems] == messages


def test_a_pipeline_file_cannot_ask_for_what_undoes_a_plan(write: Callable[..., Path]) -> None:
    path = write(text(into_store=", redeliver_to: retry, compensation: {duplicate: restore}"))
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)

    assert str(caught.value) == (
        f"{path}: hops[2].compensation.duplicate (line 12): 'restore' is what a plan does that undoes another. Use "
        "`makewhole plan undo PLAN`; here name a remedy"
    )
