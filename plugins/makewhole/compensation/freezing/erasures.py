"""Refuse to plan what would bring back a key that was erased on purpose since it was judged."""

from collections.abc import Iterable, Sequence

from makewhole.compensation.freezing.sources import Sources
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Remedy, TablePoint
from makewhole.model.plan import ERASABLE
from makewhole.postgres.read.erased import erased_in


class Erasures:
    """The keys of drafts that the stores name as erased. Load the drafts before asking."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._erased: dict[str, set[str]] = {}

    def load(self, drafts: Iterable[ActionDraft]) -> None:
        """Ask each store once about all keys that would come to it."""
        asked: dict[str, set[str]] = {}
        for draft in drafts:
            for store in self._stores(draft):
                asked.setdefault(store.name, set()).add(draft.action.key)
        for name, keys in asked.items():
            point, session, _ = self._sources.table(name)
            self._erased[name] = erased_in(session, point, sorted(keys))

    def require_not_erased(self, draft: ActionDraft) -> None:
        """Check that a draft brings no erased key back.

        Raises:
            RefusedError: a store names its key as erased.
        """
        for store in self._stores(draft):
            if draft.action.key in self._erased.get(store.name, ()) and store.erased is not None:
                raise RefusedError(f"erased: {store.name}: {store.erased.told_by}")

    def _stores(self, draft: ActionDraft) -> Sequence[TablePoint]:
        """Return the stores to which the draft would bring its key and that tell which keys were erased."""
        names = draft.action.before.get(ERASABLE, ())
        if draft.action.remedy is Remedy.UPSERT:
            names = (draft.action.target,)
        points = (self._sources.pipeline.points[name] for name in names)
        return [point for point in points if isinstance(point, TablePoint) and point.erased is not None]
