"""Test on drawn histories that the first pass takes out what the careful kernel calls matched, and nothing else: the
window that two passes judged is judged again by the careful kernel alone, which asks the store for every key.

`MAKEWHOLE_HISTORIES=100` with `-m extended` plays so many instead of a few; what every change plays of days with faults
of every kind stands in `test_numbers_of_buckets.py` and `test_carriers.py`.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from makewhole.compute.keys import key_hash
from makewhole.window.context import WindowContext
from tests.integration.spark.judged_otherwise import Judged, as_committed, otherwise
from tests.world.orders import BORN, Order, at_day, orders
from tests.world.pipeline_file import store
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

_COUNT = int(os.environ.get("MAKEWHOLE_HISTORIES", "3"))
HISTORIES = range(_COUNT)
DAYS = 4
_PLAN = {"makewhole-plan": "shop-1-0123456789ab"}

FATES = {
    "fine": 60,
    "unsent": 1,
    "unloaded": 2,
    "sent twice": 2,
    "loaded twice": 2,
    "loaded twice, once early": 2,
    "loaded early": 3,
    "loaded with the time of the day after": 2,
    "loaded the day after": 2,
    "sent the day after": 2,
    "other value": 2,
    "no value": 1,
    "no value anywhere": 1,
    "no time": 2,
    "aborted": 2,
    "aborted and sent": 2,
    "sent in a transaction": 2,
    "with other values": 1,
    "with the header of a plan": 1,
    "row alone": 2,
    "record alone": 2,
    "no row of the ledger": 1,
}


@dataclass(kw_only=True)
class History:
    """A shop at work, day by day; `later` is what it does when the window of the day was judged."""

    shop: ReconciledShop
    draw: random.Random
    known: list[Order] = field(default_factory=list)
    later: list[Callable[[], None]] = field(default_factory=list)

    def play(self, day: int) -> None:
        """Do a day's work."""
        waiting, self.later = self.later, []
        for act in waiting:
            act()
        made = orders(range(day * 100, day * 100 + 40), day)
        drawn = self.draw.choices(list(FATES), list(FATES.values()), k=len(made))
        by_fate = {fate: [order for order, its in zip(made, drawn, strict=True) if its == fate] for fate in FATES}
        self._take(day, by_fate)
        for order in self.draw.sample(self.known, min(8, len(self.known))):
            self._happen_again(day, order)
        self.known += made

    def _take(self, day: int, by_fate: dict[str, list[Order]]) -> None:
        shop = self.shop
        shop.write("outbox", [order for fate, many in by_fate.items() if fate not in _UNLISTED for order in many])
        sent = [order for fate, many in by_fate.items() if fate not in _UNSENT for order in many]
        shop.send([order for order in sent if order not in by_fate["no value anywhere"]])
        shop.send([{**order, "amount": None} for order in by_fate["no value anywhere"]])
        shop.send(by_fate["sent twice"])
        shop.send([{**order, "amount": "0.01"} for order in by_fate["with other values"]])
        shop.send(by_fate["with the header of a plan"], headers=_PLAN)
        for fates, is_committed in ((("aborted", "aborted and sent"), False), (("sent in a transaction",), True)):
            if open_ones := [order for fate in fates for order in by_fate[fate]]:
                shop.end_transaction(shop.begin_transaction(open_ones), is_committed=is_committed)
        self._load([order for fate, many in by_fate.items() if fate not in _UNLOADED for order in many])
        self._load(by_fate["loaded twice"])
        self._load(
            [at_day(day - 0.4, order) for order in (*by_fate["loaded twice, once early"], *by_fate["loaded early"])]
        )
        self._load([at_day(day + 1.2, order) for order in by_fate["loaded with the time of the day after"]])
        self._load([{**order, "amount": "0.02"} for order in by_fate["other value"]])
        self._load([{**order, "amount": None} for fate in ("no value", "no value anywhere") for order in by_fate[fate]])
        self._load([{**order, "at": None} for order in by_fate["no time"]])
        self.later.append(lambda: self._load(by_fate["loaded the day after"]))
        self.later.append(lambda: shop.send([at_day(day + 1.3, order) for order in by_fate["sent the day after"]]))

    def _load(self, rows: list[Order]) -> None:
        for table in ("warehouse", "archive"):
            self.shop.write(table, rows)

    def _happen_again(self, day: int, order: Order) -> None:
        """Do something with an order of the days before."""
        shop, now = self.shop, at_day(day + 0.9, order)
        act = self.draw.randrange(9)
        if act in (0, 1, 2):
            shop.send([now])
        if act in (1, 3, 8):
            self._load([now])
        if act in (2, 4):
            self._load([order])
        if act == 5:
            shop.sql("update warehouse set at = %s where id = %s", now["at"], order["id"])
        if act == 6:
            shop.sql("update warehouse set region = 'XX' where id = %s", order["id"])
        if act == 7:
            shop.sql("delete from warehouse where id = %s", order["id"])
        if act == 8:
            shop.write("outbox", [now])


Outcome = tuple[str, str]
"""Verdict and cause."""

_NAMES = {key_hash(f"O{number}"): f"O{number}" for number in range(100 * DAYS)}
_UNLISTED = {"row alone", "record alone", "no row of the ledger"}
_UNSENT = {
    "unsent", "aborted", "sent in a transaction", "sent the day after", "row alone", "with the header of a plan"
}  # fmt: skip
_UNLOADED = {
    "unloaded", "loaded early", "loaded with the time of the day after", "loaded the day after", "other value",
    "no value", "no value anywhere", "no time", "record alone",
}  # fmt: skip


@pytest.fixture
def history(shop: ReconciledShop, request: pytest.FixtureRequest) -> History:
    """A shop with two stores behind its topic; what their hops are is drawn."""
    draw = random.Random(request.param)
    add_partitions(shop.admin, shop.topic, 3)
    shop.partitions = 3
    shop.sql("create table archive (like warehouse)")
    hop = draw.choice([{}, {"where": "\"region = 'EU'\""}])
    shop.describe(
        hop=hop,
        more_points={"archive": store("db", "archive")},
        more_hops=[{"from": "orders", "to": "archive"}],
        settle=draw.choice(["0s", "1h"]),
        max_age=draw.choice(["1s", "1d"]),
        start=draw.choice(["earliest", None, BORN.isoformat()]),
        is_observing=True,
    )
    text = shop.file.read_text()
    shop.file.write_text(text.replace("settle:", f"late: {draw.choice(['0s', '1d'])}\nsettle:"))
    return History(shop=shop, draw=draw)


@pytest.mark.parametrize("history", HISTORIES, indirect=True)
def test_two_passes_find_what_the_careful_kernel_finds_alone(history: History) -> None:
    """Takes long: each of four days is judged three times."""
    shop, judged, clean = history.shop, list[WindowContext](), 0
    for day in range(DAYS):
        history.play(day)
        judged.append(shop.judged(day))
        clean += _check(shop, judged[-1], looks_all_up=True)
        if day == DAYS - 2:
            clean += _check(shop, shop.judged(history.draw.randrange(1, day + 1)), looks_all_up=False)
    assert clean > 0


def _check(shop: ReconciledShop, context: WindowContext, *, looks_all_up: bool) -> int:
    """Compare the results of a window with what the careful kernel finds; return the number of clean keys."""
    committed = as_committed(shop, context)
    assert committed == otherwise(shop, context, looks_all_up=False)
    if looks_all_up:
        whole = otherwise(shop, context, looks_all_up=True)
        assert {hop: _differing(judged, whole[hop]) for hop, judged in committed.items()} == {
            hop: {} for hop in committed
        }
        assert {hop: judged.digest for hop, judged in committed.items()} == {
            hop: whole[hop].digest for hop in committed
        }
    return sum(len(judged.verdicts) - len(judged.findings) for judged in committed.values())


def _differing(judged: Judged, whole: Judged) -> dict[str, tuple[Outcome | None, Outcome | None]]:
    """Return the keys with another verdict or cause, with both."""
    first, other = _outcomes(judged), _outcomes(whole)
    return {key: (first.get(key), other.get(key)) for key in {*first, *other} if first.get(key) != other.get(key)}


def _outcomes(judged: Judged) -> dict[str, Outcome]:
    """Return verdict and cause, by key; what is matched has no cause."""
    by_hash: dict[str, Outcome] = {key: (verdict, "") for key, verdict in judged.verdicts.items()}
    by_hash |= {key_hash(key): (verdict, cause) for key, verdict, cause in judged.without_evidence}
    return {_NAMES[hashed]: outcome for hashed, outcome in by_hash.items()}
