"""Choose how much is measured: all of it, a quick part, or so little that it only proves that the harness runs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bench.data import DataSet


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The data sets of each part, smaller ones first; `rounds` are counted runs of each side, after those that warm up.

    Those of `replays` and `upserts` are made by the parts themselves.
    """

    reads: Sequence[DataSet]
    scans: Sequence[DataSet]
    snapshots: Sequence[DataSet]
    replays: Sequence[DataSet]
    upserts: Sequence[DataSet]
    rounds: int
    writes: int

    def topics(self, parts: Collection[str]) -> list[DataSet]:
        """Return the data sets that have to be in topics before these parts, each once."""
        of_parts = {"duels": self.reads, "scans": self.scans, "snapshots": self.snapshots}
        return list(dict.fromkeys(data for part, sets in of_parts.items() if part in parts for data in sets))


def full() -> Plan:
    two, ten = DataSet(records=2_000_000), DataSet(records=10_000_000)
    zstd = (DataSet(records=2_000_000, codec="zstd"), DataSet(records=10_000_000, codec="zstd"))
    large = (DataSet(records=1_000_000, is_large=True), DataSet(records=1_000_000, is_large=True, codec="zstd"))
    return Plan(
        reads=(two, zstd[0], *large, ten, zstd[1]),
        scans=(ten, zstd[1]),
        snapshots=(DataSet(records=1_000_000), DataSet(records=5_000_000), ten),
        replays=(DataSet(records=1_000_000), DataSet(records=100_000, is_large=True)),
        upserts=(DataSet(records=500_000),),
        rounds=5,
        writes=3,
    )


def quick() -> Plan:
    one = DataSet(records=1_000_000)
    large = DataSet(records=100_000, is_large=True)
    return Plan(
        reads=(one, large),
        scans=(one,),
        snapshots=(one,),
        replays=(one,),
        upserts=(DataSet(records=200_000),),
        rounds=3,
        writes=1,
    )


def tiny() -> Plan:
    data = DataSet(records=20_000)
    return Plan(reads=(data,), scans=(data,), snapshots=(data,), replays=(data,), upserts=(data,), rounds=1, writes=1)
