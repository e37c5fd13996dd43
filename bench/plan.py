"""Choose how much is measured: all of it, a quick part, or so little that it only proves that the harness runs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bench.measuring.data_set import DataSet
from bench.windows.duel import BY_HAND, DATACOMPY, UNCHANGED, Duel
from bench.windows.history_data import History
from bench.windows.order_records import OrderFormat
from bench.windows.orders import Orders
from bench.windows.stage import MAKEWHOLE

_ONE_IN_TEN_THOUSAND, _ONE_IN_A_HUNDRED = 50_000, 500
"""Strides at which that share of the keys goes wrong, in five ways."""
_BY_HAND = (MAKEWHOLE, BY_HAND)
"""Without datacompy: it takes minutes for a few million orders, and its environment has nearly a gigabyte."""
_AGAIN = (MAKEWHOLE, UNCHANGED, BY_HAND)
_SMALL = tuple(Orders(number=number, stride=_ONE_IN_A_HUNDRED) for number in (1_000, 100_000))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The data sets of each part, smaller ones first; `rounds` are counted runs of each side, after those that warm up.

    Those from `replays` to `findings` are made by the parts themselves. `window_runs`: runs of each side, but for
    `windows` and `avro`, which say their own; `findings`: how many keys are missing.
    """

    reads: Sequence[DataSet]
    scans: Sequence[DataSet]
    snapshots: Sequence[DataSet]
    formats: Sequence[DataSet]
    elements: Sequence[DataSet]
    replays: Sequence[DataSet]
    upserts: Sequence[DataSet]
    windows: Sequence[Duel]
    avro: Sequence[Duel]
    scales: Sequence[Orders]
    clusters: Sequence[Orders]
    latencies: Sequence[Orders]
    histories: Sequence[History]
    findings: Sequence[int]
    rounds: int
    writes: int
    window_runs: int

    def topics(self, parts: Collection[str]) -> list[DataSet]:
        """Return the data sets that have to be in topics before these parts, each once."""
        of_parts = {"duels": self.reads, "scans": self.scans, "snapshots": self.snapshots}
        return list(dict.fromkeys(data for part, sets in of_parts.items() if part in parts for data in sets))


def _avro(number: int, runs: int, stride: int) -> tuple[Duel, ...]:
    orders = Orders(number=number, stride=stride, form=OrderFormat.AVRO)
    return (Duel(orders=orders, runs=runs, sides=_BY_HAND),)


def _orders(*numbers: int) -> tuple[Orders, ...]:
    return tuple(Orders(number=number, stride=_ONE_IN_TEN_THOUSAND) for number in numbers)


def full() -> Plan:
    two, ten = DataSet(records=2_000_000), DataSet(records=10_000_000)
    zstd = (DataSet(records=2_000_000, codec="zstd"), DataSet(records=10_000_000, codec="zstd"))
    large = (DataSet(records=1_000_000, is_large=True), DataSet(records=1_000_000, is_large=True, codec="zstd"))
    return Plan(
        reads=(two, zstd[0], *large, ten, zstd[1]),
        scans=(ten, zstd[1]),
        snapshots=(DataSet(records=1_000_000), DataSet(records=5_000_000), ten),
        formats=(two,),
        elements=(two,),
        replays=(DataSet(records=1_000_000), DataSet(records=100_000, is_large=True)),
        upserts=(DataSet(records=500_000),),
        windows=tuple(
            Duel(orders=Orders(number=number, stride=stride), runs=runs, sides=sides)
            for number, runs, sides in ((2_000_000, 1, (*_BY_HAND, DATACOMPY)), (10_000_000, 3, _AGAIN))
            for stride in (_ONE_IN_TEN_THOUSAND, _ONE_IN_A_HUNDRED)
        ),
        avro=_avro(10_000_000, 3, _ONE_IN_TEN_THOUSAND),
        scales=_orders(10_000_000, 50_000_000),
        clusters=_orders(2_000_000),
        latencies=_SMALL,
        histories=(History(days=400, orders=250_000),),
        findings=(200_000, 1_000_000),
        rounds=5,
        writes=3,
        window_runs=3,
    )


def quick() -> Plan:
    data = DataSet(records=1_000_000)
    large = DataSet(records=100_000, is_large=True)
    return Plan(
        reads=(data, large),
        scans=(data,),
        snapshots=(data,),
        formats=(data,),
        elements=(data,),
        replays=(data,),
        upserts=(DataSet(records=200_000),),
        windows=(Duel(orders=_orders(1_000_000)[0], runs=1, sides=_AGAIN),),
        avro=_avro(1_000_000, 1, _ONE_IN_TEN_THOUSAND),
        scales=_orders(200_000, 1_000_000),
        clusters=_orders(1_000_000),
        latencies=_SMALL,
        histories=(History(days=400, orders=25_000),),
        findings=(20_000, 200_000),
        rounds=3,
        writes=1,
        window_runs=1,
    )


def tiny() -> Plan:
    data = DataSet(records=20_000)
    return Plan(
        reads=(data,),
        scans=(data,),
        snapshots=(data,),
        formats=(data,),
        elements=(data,),
        replays=(data,),
        upserts=(data,),
        windows=(Duel(orders=Orders(number=20_000, stride=_ONE_IN_A_HUNDRED), runs=1, sides=_AGAIN),),
        avro=_avro(20_000, 1, _ONE_IN_A_HUNDRED),
        scales=tuple(Orders(number=number, stride=_ONE_IN_A_HUNDRED) for number in (4_000, 20_000)),
        clusters=(Orders(number=20_000, stride=_ONE_IN_A_HUNDRED),),
        latencies=_SMALL[:1],
        histories=(History(days=50, orders=1_000),),
        findings=(20_000,),
        rounds=1,
        writes=1,
        window_runs=1,
    )
