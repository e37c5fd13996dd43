"""Read records that Debezium and Kafka Connect wrote, and what PostgreSQL had in the same rows.

`samples.json` says where they are from.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SAMPLES: Mapping[str, Any] = json.loads(Path(__file__).with_name("samples.json").read_text())
ROWS: Mapping[str, Mapping[str, str | None]] = _SAMPLES["rows"]
"""Column → text of PostgreSQL, by id."""
NAMES = tuple(_SAMPLES["records"])


def value_of(name: str) -> bytes:
    """Return the value of a record."""
    record = _SAMPLES["records"][name]
    opening = "" if record["opening"] is None else _SAMPLES["openings"][record["opening"]]
    return f"{opening}{record['rest']}".encode()


def key_of(name: str) -> bytes | None:
    """Return the record key."""
    key = _SAMPLES["records"][name]["key"]
    return None if key is None else str(key).encode()
