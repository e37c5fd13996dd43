"""Test that the example really does what it says it did."""

import json
import time
from collections import Counter
from datetime import date

import pytest
from confluent_kafka import Producer

from examples.flights.misdeeds import planted
from examples.flights.settings import FIRST_DAY, TO_TOPIC, TOPIC, Systems
from examples.flights.system import System
from examples.flights.verify import Proof, prove, table_keys

pytestmark = pytest.mark.integration


def findings(proof: Proof) -> set[tuple[str, str, str]]:
    wrong = {(row["hop"], row["key"], row["verdict"]) for row in proof.wrong}
    return wrong | {(TO_TOPIC, key, "duplicate") for key in proof.repeated_in_topic}


def confessed(systems: Systems) -> list[dict[str, str]]:
    database = systems.database()
    with database, database.cursor() as cursor:
        rows = planted(cursor)
    database.close()
    return rows


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_what_went_wrong_is_exactly_what_was_written_down(systems: Systems, system: System) -> None:
    """Takes long: a day of the example is played."""
    rows = system.prepare(FIRST_DAY, 1)
    system.run(FIRST_DAY, 1, seed=7)
    proof, record = prove(systems), confessed(systems)
    assert proof.ledger == rows == 842
    assert {(row["hop"], row["key"], row["verdict"]) for row in record} == findings(proof)
    kinds = Counter((row["hop"], row["verdict"]) for row in record)
    assert all(
        kinds[hop, verdict] >= 5 for hop in (TO_TOPIC, "flights→warehouse") for verdict in ("missing", "duplicate")
    )


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_without_mistakes_every_flight_is_everywhere_once(systems: Systems, system: System) -> None:
    system.prepare(date(2013, 7, 1), 2)
    system.run(date(2013, 7, 1), 2, seed=7, with_faults=False)
    proof = prove(systems)
    assert proof.holds
    assert (proof.topic_records, proof.warehouse_rows, confessed(systems)) == (proof.ledger, proof.ledger, [])


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_the_correct_loader_takes_over_where_the_group_stands(systems: Systems, system: System) -> None:
    system.prepare(FIRST_DAY, 1)
    system.run(FIRST_DAY, 1, seed=7, with_faults=False)
    system.live()
    send_again(systems, "2013-01-01T10:00:00Z|UA|1545")
    loaded = wait_for_rows(systems, 843)
    assert loaded.total() == 843
    assert loaded["2013-01-01T10:00:00Z|UA|1545"] == 2
    assert system.stop()
    system.live()
    time.sleep(1.0)
    assert table_keys(systems, "dw.departures").total() == 843


def send_again(systems: Systems, flight_id: str) -> None:
    database = systems.database()
    with database, database.cursor() as cursor:
        cursor.execute("select row_to_json(d) from ops.departures d where flight_id = %s", (flight_id,))
        [(row,)] = cursor.fetchall()
    database.close()
    producer = Producer({"bootstrap.servers": systems.bootstrap})
    producer.produce(TOPIC, key=flight_id, value=json.dumps(row))
    assert producer.flush(10) == 0


def wait_for_rows(systems: Systems, rows: int) -> Counter[str]:
    deadline = time.monotonic() + 20
    loaded = table_keys(systems, "dw.departures")
    while loaded.total() < rows and time.monotonic() < deadline:
        time.sleep(0.2)
        loaded = table_keys(systems, "dw.departures")
    return loaded
