"""Test that a plan whose actions are looked at part by part is understood as a whole."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from makewhole.compensation.execution.targets import Target, require_same_places
from makewhole.compensation.preview import dry_run
from makewhole.journal import actions as stored
from makewhole.journal.actions import SCHEMA, in_parts
from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.points import PointKind, TablePoint

pytestmark = pytest.mark.unit

CONNECTION = PostgresConnection(id="db", dsn="host=nowhere")


@pytest.fixture(autouse=True)
def parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_ROWS_OF_A_PART", 3)


def planned(keys: Sequence[str], place: str = "db/orders", last_place: str = "db/orders") -> pa.Table:
    places = [place] * (len(keys) - 1) + [last_place]
    rows = [
        {
            "seq": seq,
            "chunk": seq // 4,
            "remedy": "upsert",
            "hop": "a→b",
            "target": "orders",
            "key": key,
            "key_hash": key * 8,
            "before": json.dumps({"payload_from": "archive", "place": of}, separators=(",", ":")),
        }
        for seq, (key, of) in enumerate(zip(keys, places, strict=False))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize(("number", "sizes"), [(0, [0]), (2, [2]), (3, [3]), (7, [3, 3, 1])])
def test_parts_have_every_row_once_in_order(number: int, sizes: list[int]) -> None:
    table = planned([f"k{number_of_key}" for number_of_key in range(number)])
    parts = list(in_parts(table))
    assert [len(part) for part in parts] == sizes
    assert pa.concat_tables(parts).equals(table)


def test_a_target_that_moved_is_found_in_the_last_part() -> None:
    point = TablePoint(name="orders", kind=PointKind.STORE, connection="db", table="public.orders", key=("id",))
    targets = {"orders": Target(point=point, connection=CONNECTION)}
    require_same_places(planned(list("abcdefg"), point.place, point.place), targets)
    with pytest.raises(RefusedError, match="was db/elsewhere when the plan was frozen"):
        require_same_places(planned(list("abcdefg"), point.place, "db/elsewhere"), targets)


def test_the_later_actions_on_a_key_wait_whatever_part_they_are_in() -> None:
    forecast = object.__new__(dry_run._PlanForecast)
    forecast._frame = dry_run._actions_frame(planned(["a", "b", "c", "b", "d", "a", "b"]))
    assert forecast._waiting("orders", 0) == {3, 5, 6}
    assert forecast._waiting("orders", 1) == set()
    assert forecast._waiting("others", 0) == set()
