"""Test on drawn histories of versions that the first pass takes out what the careful kernel calls matched, and nothing
else: the window that two passes judged is judged again by the careful kernel alone.

`MAKEWHOLE_HISTORIES=100` with `-m extended` plays so many instead of a few.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.window.context import WindowContext
from tests.integration.spark.judged_otherwise import as_committed, otherwise
from tests.integration.spark.test_two_passes import HISTORIES
from tests.world.orders import BORN, DAY, Order
from tests.world.shop import STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DAYS = 4
PARTITIONS = 3
_PLAN = {"makewhole-plan": "shop-1-0123456789ab"}

FATES = {
    "fine": 60,
    "last unsent": 2,
    "first unsent": 2,
    "none sent": 1,
    "sent in another order": 3,
    "sent into two partitions": 2,
    "sent twice": 2,
    "first aborted": 2,
    "last aborted": 2,
    "sent in a transaction": 2,
    "without values": 1,
    "with the header of a plan": 1,
    "moved abroad": 2,
    "last not loaded": 3,
    "not loaded": 2,
    "loaded twice": 2,
    "loaded with other values": 2,
    "loaded without a number": 2,
    "loaded without a time": 2,
    "deleted": 3,
    "deleted, and in the store": 2,
    "deleted, and born again": 2,
    "not in the ledger": 2,
    "loaded the day after": 2,
    "ahead": 3,
}


def change(number: int, version: int, day: int, minute: int) -> Order:
    """Return a version of an order, so many minutes into a day."""
    at = BORN + day * DAY + timedelta(minutes=minute)
    return {
        "id": f"O{number}",
        "number": number,
        "region": "US" if number % 5 == 0 else "EU",
        "amount": f"{number}.{10 + version % 90}",
        "version": version,
        "at": at.isoformat(),
    }


@dataclass(kw_only=True)
class Versions:
    """A shop at work whose orders change day by day; `later` is what it does when the window of the day was judged."""

    shop: ReconciledShop
    draw: random.Random
    version: dict[int, int] = field(default_factory=dict)
    later: list[Callable[[], None]] = field(default_factory=list)

    def play(self, day: int) -> None:
        """Do a day's work: forty orders change, old ones and new ones, each by one to three versions."""
        waiting, self.later = self.later, []
        for act in waiting:
            act()
        numbers = [*self.draw.sample(sorted(self.version), min(20, len(self.version)))]
        numbers += range(day * 100, day * 100 + 40 - len(numbers))
        self.draw.shuffle(numbers)
        drawn = self.draw.choices(list(FATES), list(FATES.values()), k=len(numbers))
        for number, fate in zip(numbers, drawn, strict=True):
            self._happen(fate, [self._next(number, day, at) for at in range(self.draw.randrange(1, 4))], day)
        if day:
            self.shop.sql("update warehouse set version = version + 100 where id = %s", f"O{self._any()}")
            self.shop.sql("delete from warehouse where id = %s", f"O{self._any()}")
            self.shop.sql("update warehouse set amount = 0.01 where id = %s", f"O{self._any()}")

    def _any(self) -> int:
        return self.draw.choice(sorted(self.version))

    def _next(self, number: int, day: int, at: int) -> Order:
        """Return the next version of an order; its number is now and then a lower one than before."""
        step = self.draw.choices([1, 0, -2], [20, 1, 1])[0]
        self.version[number] = max(1, self.version.get(number, 0) + step)
        return change(number, self.version[number], day, 60 * at + 1)

    def _happen(self, fate: str, made: Sequence[Order], day: int) -> None:
        shop, last = self.shop, made[-1]
        if fate != "not in the ledger":
            shop.write("outbox", made)
        self._send(fate, made)
        if fate.startswith("deleted"):
            shop.delete([last["id"]], day=day + 0.5, partition=last["number"] % PARTITIONS)
        if fate == "deleted, and born again":
            shop.send([last])
        if fate in ("deleted", "not loaded", "loaded the day after"):
            shop.sql("delete from warehouse where id = %s", last["id"])
            if fate == "loaded the day after":
                self.later.append(lambda: self._load([last]))
            return
        if fate == "last not loaded":
            if len(made) > 1:
                self._load(made[-2:-1])
            return
        if fate == "ahead":
            ahead = self._next(last["number"], day + 1, 9)
            self._load([ahead])
            self.later.append(lambda: shop.send([ahead]))
            self.later.append(lambda: shop.write("outbox", [ahead]))
            return
        self._load([self._as_loaded(fate, last)] * (2 if fate == "loaded twice" else 1))

    def _send(self, fate: str, made: Sequence[Order]) -> None:
        shop, sent = self.shop, list(made)
        first, last = made[:1], made[-1:]
        left_out = {"last unsent": last, "last aborted": last, "first unsent": first, "first aborted": first}
        if fate == "none sent":
            return
        if "aborted" in fate or fate == "sent in a transaction":
            open_ones = left_out.get(fate, made)
            is_committed = fate == "sent in a transaction"
            shop.end_transaction(shop.begin_transaction(open_ones), is_committed=is_committed)
            sent = [] if is_committed else sent
        sent = [version for version in sent if version not in left_out.get(fate, ())]
        if fate == "sent in another order":
            sent.reverse()
        if fate == "sent into two partitions":
            sent[-1] = {**sent[-1], "number": sent[-1]["number"] + 1}
        if fate == "without values":
            sent[-1] = {**sent[-1], "amount": None}
        if fate == "moved abroad":
            sent[-1] = {**sent[-1], "region": "XX"}
        shop.send(sent, headers=_PLAN if fate == "with the header of a plan" else None)
        if fate == "sent twice":
            shop.send(sent)

    def _as_loaded(self, fate: str, last: Order) -> Order:
        changed: dict[str, Order] = {
            "loaded with other values": {"amount": "0.02"},
            "loaded without a number": {"version": None},
            "loaded without a time": {"at": None},
            "without values": {"amount": None},
        }
        return {**last, **changed.get(fate, {})}

    def _load(self, rows: Iterable[Order]) -> None:
        """Put rows into the store, in the place of those of their keys."""
        rows = list(rows)
        for key in {row["id"] for row in rows}:
            self.shop.sql("delete from warehouse where id = %s", key)
        self.shop.write("warehouse", rows)


@pytest.fixture
def versions(shop: ReconciledShop, request: pytest.FixtureRequest) -> Versions:
    """A shop whose orders change; what its hops and its topic are is drawn."""
    draw = random.Random(request.param)
    add_partitions(shop.admin, shop.topic, PARTITIONS)
    shop.partitions = PARTITIONS
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version bigint")
    shop.more_columns["version"] = "bigint"
    shop.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=draw.choice([True, False]),
        hop=draw.choice([{}, {"where": "\"region = 'EU'\""}]),
        settle=draw.choice(["0s", "1h"]),
        max_age=draw.choice(["1s", "1d"]),
        start=draw.choice(["earliest", None, BORN.isoformat()]),
        late=draw.choice(["0s", "1d"]),
        is_observing=True,
    )
    return Versions(shop=shop, draw=draw)


@pytest.mark.extended
@pytest.mark.parametrize("versions", HISTORIES, indirect=True)
def test_two_passes_find_what_the_careful_kernel_finds_alone(versions: Versions) -> None:
    """Takes long: each of four days is judged three times."""
    shop, clean = versions.shop, 0
    for day in range(DAYS):
        versions.play(day)
        clean += _check(shop, shop.judged(day))
        if day == DAYS - 2:
            clean += _check(shop, shop.judged(versions.draw.randrange(1, day + 1)))
    assert clean > 30 * DAYS


def _check(shop: ReconciledShop, context: WindowContext) -> int:
    """Compare the results of a window with what the careful kernel finds; return the number of clean keys on both hops,
    some on each."""
    assert as_committed(shop, context) == otherwise(shop, context, looks_all_up=False)
    with connect(shop.journal) as journal:
        results = hop_results.results(journal, context.window)
    clean = {hop: result.files["summary"]["clean"] for hop, result in results.items()}
    assert clean[STORE_HOP] > 0
    return sum(clean.values())
