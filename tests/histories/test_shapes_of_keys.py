"""Test that random changes of rows are found, repaired, and nothing else, by the coordinates of records instead of ids.

make histories HISTORIES_ARGS="tests/histories/test_shapes_of_keys.py --histories 1000 --seed 1"
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from tests.histories.shapes.changes import OF_ROWS, TYPES, Change, ChangedDay, draw_day
from tests.histories.shapes.coordinates import COORDINATES, Coordinates, in_log_order, send_numbered
from tests.histories.shapes.formats import FORMATS, RecordFormat
from tests.histories.shapes.stores import COLUMNS
from tests.histories.shapes.verdicts import REPAIRS, differing_from
from tests.world.orders import Order
from tests.world.pipeline_file import flow, store, topic
from tests.world.shop import STORE_HOP
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]

_VERDICTS = {
    Change.ROW_LOST: "missing",
    Change.ROW_REPEATED: "duplicate",
    Change.ROW_CHANGED: "mismatched",
    Change.ROW_ADDED: "unexpected",
}
_READABLE = [record_format for record_format in FORMATS if record_format.key == '"$.id"']
"""The formats whose values have the id: rows are written whole, and it is no key here."""


@pytest.mark.parametrize("coordinates", COORDINATES, ids=lambda kind: kind.name)
def test_random_changes_of_rows_are_found_by_coordinates_and_repaired(
    seed: int, coordinates: Coordinates, shops: NewShop
) -> None:
    random = Random(seed)
    record_format, day = random.choice(_READABLE), draw_day(seed, OF_ROWS)
    with shops(random.randint(1, 3)) as shop:
        keys, whole = _play(shop, record_format, coordinates, day)

        context = shop.judge_and_ask_the_gate()

        verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
        assert verdicts == {keys[key]: _VERDICTS[change] for key, change in day.changes.items()}, record_format.name
        if day.changes:
            assert plan_window(context).plan is not None
            compensate_window(context, lambda _: None)
            verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified"
        assert differing_from(shop, "warehouse", whole) == []


def _play(
    shop: ReconciledShop, record_format: RecordFormat, coordinates: Coordinates, day: ChangedDay
) -> tuple[dict[str, str], list[Order]]:
    """Have the topic and the store of a day; return the business key of each id, and the rows that are right."""
    more = "".join(f", {name} bigint" for name in coordinates.columns)
    shop.sql(f"create table warehouse ({COLUMNS}{more})")
    for name, content in record_format.files.items():
        (shop.file.parent / name).write_bytes(content)
    shop.describe(
        has_ledger=False,
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        hop={"compensation": flow(REPAIRS), "write": "{id: string}"},
        more_points={
            "orders": topic("log", shop.topic, **{**record_format.settings, "key": coordinates.name}),
            "warehouse": store("db", "warehouse", key=f"[{', '.join(coordinates.columns)}]"),
        },
        is_observing=True,
    )
    send_numbered(shop, record_format, day.records)
    whole = [record | coordinates.of(of_log) for record, of_log in in_log_order(shop, day.records)]
    by_id = {row["id"]: {name: row[name] for name in coordinates.columns} for row in whole}
    strays = (key for key, change in day.changes.items() if change is Change.ROW_ADDED)
    last = list(coordinates.columns)[-1]
    for at, key in enumerate(strays):
        by_id[key] = {**coordinates.stray, last: coordinates.stray[last] + at}
    insert_rows(shop.dsn, "warehouse", [row | by_id[row["id"]] for row in day.rows])
    return {key: coordinates.key_of(values) for key, values in by_id.items()}, whole
