"""Sum up what was measured: medians, ranges and ratios."""

from collections.abc import Sequence
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


def as_json(machine: dict[str, str], series: Sequence[Series]) -> dict[str, Any]:
    """Return everything measured, for machines."""
    return {"machine": machine, "series": [asdict(one) | {"data": asdict(one.data)} for one in series]}
