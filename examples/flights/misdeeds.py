"""Record what the example did wrong; written by the part that did it or by the driver that killed it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg2 import extensions
from psycopg2.extras import Json, execute_values


@dataclass(frozen=True, kw_only=True)
class Misdeed:
    """One effect on one flight: -1 a copy too few behind `hop`, +1 a copy too many."""

    what: str
    hop: str
    flight_id: str
    effect: int
    detail: Mapping[str, Any] = field(default_factory=dict)


def record(cursor: extensions.cursor, misdeeds: Iterable[Misdeed]) -> None:
    """Write the misdeeds in the caller's transaction."""
    rows = [
        (misdeed.what, misdeed.hop, misdeed.flight_id, misdeed.effect, Json(dict(misdeed.detail)))
        for misdeed in misdeeds
    ]
    if rows:
        execute_values(cursor, "insert into ops.misdeeds (what, hop, flight_id, effect, detail) values %s", rows)


def planted(cursor: extensions.cursor) -> list[dict[str, str]]:
    """Return what a checker should find, in a stable order."""
    cursor.execute('select hop, key, verdict, misdeed from ops.planted order by hop collate "C", key collate "C"')
    return [dict(zip(("hop", "key", "verdict", "misdeed"), row, strict=True)) for row in cursor.fetchall()]


def as_line(row: Mapping[str, Any]) -> str:
    """Return one line of JSON, readable."""
    return json.dumps(row, ensure_ascii=False)
