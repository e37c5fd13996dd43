"""Sum up what was measured: medians, ranges and ratios."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost


@dataclass(frozen=True, kw_only=True)
class Series:
    """The runs of one side in one part: the first of a fresh session (`cold`), and the counted ones after it."""

    part: str
    side: str
    data: DataSet
    cold: Cost | None = None
    warm: list[Cost] = field(default_factory=list)
    written_bytes: int | None = None

    def median(self, figure: str) -> float:
        """Return the median over the warm runs of a figure of `Cost`."""
        return float(median(getattr(cost, figure) for cost in self.warm))

    def range(self, figure: str) -> tuple[float, float]:
        """Return the least and the most of the warm runs."""
        figures = [getattr(cost, figure) for cost in self.warm]
        return min(figures), max(figures)

    def peak(self, figure: str) -> float:
        """Return the most of all runs, the cold one too."""
        runs = self.warm if self.cold is None else [self.cold, *self.warm]
        return max(float(getattr(cost, figure)) for cost in runs)

    @property
    def records_per_second(self) -> float:
        return self.data.records / self.median("wall_seconds")

    @property
    def records_per_cpu_second(self) -> float:
        return self.data.records / self.median("cpu_seconds")


def ratio(of: Series, to: Series, figure: str) -> float:
    """Return how many times as much the peer takes, run by run in pairs: they ran next to each other."""
    pairs = zip(of.warm, to.warm, strict=True)
    return float(median(getattr(theirs, figure) / max(getattr(ours, figure), 1e-3) for ours, theirs in pairs))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A part of the benchmark as it was measured last: on which day, with which load before it, on what machine."""

    day: str
    load: float
    machine: Mapping[str, str]
    series: Sequence[Series]


Results = Mapping[str, Measured]
"""The parts of the benchmark by name."""


def as_json(results: Results) -> dict[str, Any]:
    """Return everything measured, for machines."""
    return {name: asdict(measured) for name, measured in results.items()}


def from_json(document: Mapping[str, Any]) -> dict[str, Measured]:
    """Return what `as_json` was made of."""
    return {
        name: Measured(**{**measured, "series": [_series(**runs) for runs in measured["series"]]})
        for name, measured in document.items()
    }


def _series(
    *, data: Mapping[str, Any], cold: Mapping[str, Any] | None, warm: Sequence[Mapping[str, Any]], **others: Any
) -> Series:
    return Series(
        data=DataSet(**data),
        cold=None if cold is None else Cost(**cold),
        warm=[Cost(**cost) for cost in warm],
        **others,
    )
