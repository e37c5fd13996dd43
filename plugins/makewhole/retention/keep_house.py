"""Remove what a pipeline has kept for as long as its file says.

It may be killed anywhere, and run twice at once: what goes is decided in the journal first, and the next run goes on
with it until all of it is gone.
"""

from collections.abc import Iterator

from makewhole.journal.retention import removable
from makewhole.journal.retention.file_locks import files_kept_by
from makewhole.model.retention import Kept
from makewhole.retention.house import House, Outcome
from makewhole.retention.of_plans import remove_of_plan
from makewhole.retention.of_windows import remove_of_window

_OF_PLANS = (Kept.QUARANTINE, Kept.EFFECTS)


def keep_house(house: House) -> Iterator[Outcome]:
    """Remove, kind by kind, what was kept long enough; yield what went of each window and plan, and what stays.

    Raises:
        TransientError: the journal or the storage does not answer, or a key is being erased.
    """
    with files_kept_by(house.journal, house.pipeline.name):
        yield from _keep(house)


def _keep(house: House) -> Iterator[Outcome]:
    name = house.pipeline.name
    for kind, kept in house.pipeline.keep:
        with house.journal.transaction() as journal:
            plans = removable.ended_plans(journal, name, kind, kept) if kind in _OF_PLANS else []
            of_windows = removable.removable_windows
            windows = [] if kind in _OF_PLANS else of_windows(journal, name, kind, kept, house.published_to)
        yield from (remove_of_plan(house, kind, plan) for plan in plans)
        outcomes = (remove_of_window(house, kind, window) for window in windows)
        yield from (outcome for outcome in outcomes if outcome is not None)
