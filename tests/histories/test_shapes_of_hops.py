"""Test that random changes of a day are found on the hops that compare what was changed, and repaired there alone.

make histories HISTORIES_ARGS="tests/histories/test_shapes_of_hops.py --histories 1000 --seed 1"
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from tests.histories.shapes.changes import OF_ROWS, TYPES, Change, ChangedDay, draw_day
from tests.histories.shapes.formats import json_value
from tests.histories.shapes.stores import STORES, StoreKind
from tests.histories.shapes.verdicts import REPAIRS, REPORTS, differing_rows, found_verdicts
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow, store, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]


@dataclass(frozen=True, kw_only=True)
class ComparedColumns:
    """The columns that the file names, and those of each hop; None: it has no line of its own."""

    of_file: tuple[str, ...]
    of_ledger_hop: tuple[str, ...] | None
    of_store_hop: tuple[str, ...] | None

    @classmethod
    def draw(cls, random: Random) -> "ComparedColumns":
        own = [_some_columns(random) if random.random() < chance else None for chance in (0.6, 0.8)]
        return cls(of_file=_some_columns(random), of_ledger_hop=own[0], of_store_hop=own[1])

    def at(self, hop: str) -> tuple[str, ...]:
        """Return those that a hop compares."""
        own = self.of_ledger_hop if hop == LEDGER_HOP else self.of_store_hop
        return self.of_file if own is None else own

    def settings(self, hop: str) -> Settings:
        """Return the line of a hop."""
        own = self.of_ledger_hop if hop == LEDGER_HOP else self.of_store_hop
        return {} if own is None else {"compare": typed(own)}


def _some_columns(random: Random) -> tuple[str, ...]:
    return tuple(random.sample([*TYPES], k=random.randint(0, len(TYPES))))


def typed(names: Iterable[str]) -> str:
    return flow({name: f'"{TYPES[name]}"' for name in names})


def test_random_changes_are_found_on_the_hops_that_compare_them(seed: int, shops: NewShop) -> None:
    random = Random(seed)
    kind, day, compared = random.choice(STORES), draw_day(seed), ComparedColumns.draw(random)
    with shops(random.randint(1, 3)) as shop:
        _play(shop, kind, day, compared, REPORTS)
        context = shop.judged()
        judged = {hop: found_verdicts(shop, context, hop) for hop in (LEDGER_HOP, STORE_HOP)}
        assert judged == _right(day, compared), (kind.name, compared)


def test_a_repair_writes_what_its_hop_compares(seed: int, shops: NewShop) -> None:
    random = Random(seed)
    kind = random.choice([store for store in STORES if store.is_writable])
    day, compared = draw_day(seed, OF_ROWS), ComparedColumns.draw(random)
    with shops(1) as shop:
        _play(shop, kind, day, compared, REPAIRS)
        rows = _repaired(day, compared.at(STORE_HOP))
        context = shop.judge_and_ask_the_gate()
        if _right(day, compared)[STORE_HOP]:
            frozen = plan_window(context)
            assert frozen.plan is not None
            compensate_window(context, lambda _: None)
            verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified", (kind.name, compared)
        assert differing_rows(shop, kind, rows) == []


def _right(day: ChangedDay, compared: ComparedColumns) -> dict[str, dict[str, str]]:
    """Return the verdicts of a day without those on values that their hop does not compare."""
    sent, records, rows = ({order["id"]: order for order in orders} for orders in (day.ledger, day.records, day.rows))
    ends = {LEDGER_HOP: (sent, records), STORE_HOP: (records, rows)}
    return {hop: _compared(verdicts, *ends[hop], compared.at(hop)) for hop, verdicts in day.verdicts.items()}


def _compared(
    verdicts: Mapping[str, str], source: Mapping[str, Order], target: Mapping[str, Order], names: Iterable[str]
) -> dict[str, str]:
    """Return verdicts without those on keys that differ in other columns than these."""
    return {
        key: verdict
        for key, verdict in verdicts.items()
        if verdict != "mismatched" or any(source[key][name] != target[key][name] for name in names)
    }


def _repaired(day: ChangedDay, compared: Iterable[str]) -> list[Order]:
    """Return the rows as they have to be: of a changed one just what is compared is written."""
    changed: Mapping[str, Order] = {
        row["id"]: row for row in day.rows if day.changes.get(row["id"]) is Change.ROW_CHANGED
    }
    return [
        {**changed[row["id"]], **{name: row[name] for name in compared}} if row["id"] in changed else row
        for row in day.repaired_rows
    ]


def _play(
    shop: ReconciledShop, kind: StoreKind, day: ChangedDay, compared: ComparedColumns, remedies: Settings
) -> None:
    """Have the ledger, the topic and the store of a day, and the pipeline file."""
    kind.make(shop)
    others = [name for name in TYPES if name not in compared.at(STORE_HOP)]
    shop.describe(
        compare=typed(compared.of_file),
        ledger_hop={"compensation": "{missing: report}", **compared.settings(LEDGER_HOP)},
        hop={"compensation": flow(remedies), "write": typed(others), **compared.settings(STORE_HOP)},
        more_points={
            "orders": topic("log", shop.topic, key='"$.id"'),
            "warehouse": {**store("db", "warehouse"), **kind.settings},
        },
        is_observing=True,
    )
    insert_rows(shop.dsn, "outbox", day.ledger)
    shop.send_values((record["id"], json_value(record), {}) for record in day.records)
    insert_rows(shop.dsn, kind.written, map(kind.row, day.rows))
