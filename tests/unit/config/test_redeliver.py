"""Test `redeliver`: who else reads a topic that records are sent to again has to be said."""

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
  retry: {kind: topic, connection: log, topic: flights-retry, key: "$.flight_id"}
  warehouse: {kind: store, connection: db, table: dw.departures, key: flight_id}
  lake: {kind: store, connection: db, table: lake.departures, key: flight_id}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: warehouse, consumer_group: dw, HOP}
  - {from: flights, to: lake, consumer_group: lake-loader}
compensation: {missing: report, duplicate: report}
"""
RESEND = "compensation: {missing: redeliver, duplicate: report}"
REMEDY = (
    "Write 'redeliver: {to: source}' on this hop (a record is then sent only while no other reader has its key; "
    "'despite: [GROUP]' beside it names groups that may read it twice), 'redeliver: {to: POINT}' with a replay topic, "
    "or 'missing: upsert' in its compensation"
)


def text(hop: str, *, replaced: tuple[str, str] = ("", "")) -> str:
    made = FILE.replace("HOP", hop).replace(*replaced)
    return made if "retry" in hop else "".join(line for line in made.splitlines(True) if "  retry:" not in line)


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_plain_redelivery_to_a_topic_of_two_stores_is_refused_with_the_lines_to_write(
    write: Callable[..., Path],
) -> None:
    assert problems_of(write(text(RESEND))) == [
        "hops[1] (line 10): flights→warehouse answers missing keys by redeliver: flights→lake reads flights, too, and "
        f"would get the records a second time. {REMEDY}"
    ]


@pytest.mark.parametrize(
    ("said", "to", "despite"),
    [
        ("redeliver: {to: source}", None, ()),
        ("redeliver: {to: source, despite: lake-loader}", None, ("lake-loader",)),
        ("redeliver: {to: source, despite: [lake-loader, audit]}", None, ("lake-loader", "audit")),
        ("redeliver: {to: retry}", "retry", ()),
        ("redeliver: {to: retry, despite: [audit]}", "retry", ("audit",)),
        ("redeliver_to: retry", "retry", ()),
    ],
)
def test_a_hop_says_where_its_records_go_and_despite_whom(
    write: Callable[..., Path], said: str, to: str | None, despite: tuple[str, ...]
) -> None:
    hop = load_pipeline(write(text(f"{RESEND}, {said}"))).hops[1]

    assert (hop.redeliver_to, hop.redeliver_despite) == (to, despite)


@pytest.mark.parametrize(
    "replaced",
    [
        ("lake.departures, key: flight_id}", "lake.departures, key: flight_id, version: version}"),
        ("lake.departures", "dw.departures"),  # the same table under another name
    ],
)
def test_a_reader_that_overwrites_or_fills_the_same_table_does_not_count(
    write: Callable[..., Path], replaced: tuple[str, str]
) -> None:
    assert load_pipeline(write(text(RESEND, replaced=replaced))).hops[1].redeliver_to is None


def test_a_hop_that_repairs_otherwise_says_nothing(write: Callable[..., Path]) -> None:
    upsert = "compensation: {missing: upsert, duplicate: report}"

    assert load_pipeline(write(text(upsert))).hops[1].redeliver_despite == ()


@pytest.mark.parametrize(
    ("hop", "messages"),
    [
        (
            f"{RESEND}, redeliver: {{to: retry}}, redeliver_to: retry",
            [
                "hops[1].redeliver_to (line 11): 'redeliver' stands beside it, which says the same. Take this line "
                "out: 'redeliver' has 'to' for it"
            ],
        ),
        (
            f"{RESEND}, redeliver: source",
            ["hops[1].redeliver (line 10): is text, not a mapping. Write 'key: value' lines below it, or {key: value}"],
        ),
        (
            f"{RESEND}, redeliver: {{despite: [audit]}}",
            [
                "hops[1].redeliver.to (line 10): is missing. Write 'source' for the topic that the hop starts from, or "
                "name a replay topic"
            ],
        ),
        (
            f"{RESEND}, redeliver: {{to: source, despite: [dw]}}",
            [
                "hops[1].redeliver.despite (line 10): 'dw' is the group of this hop, which is to read the record. "
                "Take it out of the list"
            ],
        ),
        (
            f"{RESEND}, redeliver: {{to: source, despite: [audit, audit]}}",
            ["hops[1].redeliver.despite[1] (line 10): 'audit' is named twice. Name it once"],
        ),
        (
            f"{RESEND}, redeliver: {{to: flights}}",
            ["hops[1].redeliver.to (line 10): 'flights' is where the hop starts. Write 'source'"],
        ),
        (
            f"{RESEND}, redeliver: {{to: lake}}",
            ["hops[1].redeliver.to (line 10): 'lake' is a store, and records go to topics. Allowed: flights"],
        ),
        (
            "compensation: {missing: upsert, duplicate: report}, redeliver: {to: source}",
            [
                "hops[1].redeliver (line 10): no verdict of flights→warehouse is answered by redeliver. Write "
                "'missing: redeliver' in its compensation, or take the line out"
            ],
        ),
    ],
)
def test_what_redelivery_cannot_do_is_refused(write: Callable[..., Path], hop: str, messages: list[str]) -> None:
    assert problems_of(write(text(hop))) == messages


def test_a_point_that_is_called_source_does_not_blur_what_is_intended(write: Callable[..., Path]) -> None:
    hop = f"{RESEND}, redeliver: {{to: source}}"

    assert problems_of(write(text(hop, replaced=("  lake:", "  source:")).replace("to: lake", "to: source"))) == [
        "hops[1].redeliver (line 10): 'source' is a point of this pipeline, and means the topic that the hop starts "
        "from here. Give the point source another name"
    ]
