"""Write pipeline files of a test's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

MINIMAL = """\
version: 2
pipeline: flights
points:
  outbox: {kind: ledger, connection: airline_db, table: ops.departures, key: flight_id, time: recorded_at}
  flights: {kind: topic, connection: kafka_main, topic: flights, key: "$.flight_id"}
  warehouse: {kind: store, connection: warehouse_db, table: dw.departures, key: flight_id}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: warehouse}
"""


@pytest.fixture
def minimal() -> str:
    """Return the least that a pipeline file may say."""
    return MINIMAL


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(text: str | bytes, name: str = "flights.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file
