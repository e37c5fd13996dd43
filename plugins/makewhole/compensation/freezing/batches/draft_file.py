"""Keep the drafts of a plan, and give them back in the plan's order."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from makewhole.compensation.planning.action_draft import ActionDraft, PlanOrder
from makewhole.lake.local_files import ObjectFile
from makewhole.model.closing import ClosingContext

SLICE = 5_000
"""So many drafts are in memory at a time."""

_PLACES = {"hop": pl.Int32, "remedy": pl.Int32, "key": pl.String, "place": pl.Int64}


class DraftFile(ClosingContext):
    """Drafts with their order; of equal ones the first added comes first. Close it after use."""

    def __init__(self) -> None:
        self._drafts = ObjectFile()
        self._places: list[pl.DataFrame] = []

    def close(self) -> None:
        """Delete the file."""
        self._drafts.close()

    def __len__(self) -> int:
        return sum(len(places) for places in self._places)

    def add(self, drafts: Sequence[tuple[PlanOrder, ActionDraft]]) -> None:
        """Add drafts."""
        rows = [(*order, self._drafts.add(draft)) for order, draft in drafts]
        self._places.append(pl.DataFrame(rows, schema=_PLACES, orient="row"))

    def slices(self, size: int = SLICE) -> Iterator[list[ActionDraft]]:
        """Yield all drafts in the plan's order, at least `size` at a time; those of a finding come together."""
        some: list[ActionDraft] = []
        for draft in self:
            if len(some) >= size and not _is_of_same_finding(some[-1], draft):
                yield some
                some = []
            some.append(draft)
        if some:
            yield some

    def __iter__(self) -> Iterator[ActionDraft]:
        for place in self._in_order():
            yield self._drafts.read(int(place))

    def _in_order(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        if not self._places:
            return np.array([], dtype=np.int64)
        ordered = pl.concat(self._places).sort("hop", "remedy", "key", "place")
        return ordered["place"].to_numpy()


def _is_of_same_finding(draft: ActionDraft, other: ActionDraft) -> bool:
    return (draft.finding.hop, draft.finding.key_hash) == (other.finding.hop, other.finding.key_hash)
