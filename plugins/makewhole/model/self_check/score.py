"""Score a round of a self-check: how much of what was planted was found and repaired."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from makewhole.model.self_check.planted import Discrepancy
from makewhole.model.text import counted
from makewhole.model.window import WindowState

_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Score:
    """The fate of the faults of a round. `invented`: found, and not planted. `left`: what is wrong in the scratch
    topic and tables after the repair, as read by the self-check itself. `state` is that of the window, with its
    reason."""

    planted: int
    found: int
    missed: tuple[Discrepancy, ...]
    invented: tuple[Discrepancy, ...]
    left: tuple[Discrepancy, ...]
    state: WindowState
    reason: str | None = None

    @property
    def recall(self) -> float:
        """The share of what was planted that was found, 0..1."""
        return (self.planted - len(self.missed)) / self.planted if self.planted else 0.0

    @property
    def precision(self) -> float:
        """The share of what was found that was planted, 0..1; 0 where nothing was found."""
        return (self.found - len(self.invented)) / self.found if self.found else 0.0

    @property
    def is_green(self) -> bool:
        """Whether all that was planted was found, nothing else was, and all of it was repaired with proof."""
        return not any(self._faults())

    @property
    def numbers(self) -> dict[str, float]:
        """Recall and precision (0..1), and how many faults were planted, found, missed, invented and are left."""
        return {
            "recall": self.recall,
            "precision": self.precision,
            "planted": self.planted,
            "found": self.found,
            "missed": len(self.missed),
            "invented": len(self.invented),
            "left": len(self.left),
        }

    def sentence(self) -> str:
        """Return a sentence of what was found of the planted faults, and of all that is wrong with that."""
        hits = self.planted - len(self.missed)
        ratios = f"recall {ratio_text(self.recall)}, precision {ratio_text(self.precision)}"
        return "; ".join([f"{hits} of {counted(self.planted, 'planted fault')} found, {ratios}", *self._faults()])

    def _faults(self) -> Iterator[str]:
        if not self.planted:
            yield "nothing was planted"
        if self.missed:
            yield f"{len(self.missed)} missed: {_named(self.missed)}"
        if self.invented:
            yield f"{len(self.invented)} invented: {_named(self.invented)}"
        if self.left:
            yield f"{len(self.left)} still wrong: {_named(self.left)}"
        if self.state is not WindowState.CERTIFIED:
            yield f"its window is {self.state.value}" + (f" ({self.reason})" if self.reason else "")


def ratio_text(ratio: float) -> str:
    """Return a ratio with three digits, cut off and not rounded: only what is whole reads 1.000."""
    return f"{int(ratio * 1000) / 1000:.3f}"


def _named(faults: Iterable[Discrepancy]) -> str:
    texts = [f"{fault.key} ({fault.verdict} on {fault.hop})" for fault in faults]
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
