"""Read the rows that upserts find in their tables, of many keys together."""

from collections.abc import Mapping, Sequence

from makewhole.compensation.freezing.sources import Sources
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Remedy
from makewhole.postgres.read.many_keys import rows_of_many_keys
from makewhole.postgres.tables import TableRow, rows_of_key


class RowsBefore:
    """The rows of the keys of some upserts, by the table that each writes."""

    def __init__(self, sources: Sources, drafts: Sequence[ActionDraft]) -> None:
        self._sources = sources
        self._keys: dict[str, set[str]] = {}
        self._rows: dict[str, Mapping[str, Sequence[TableRow]] | None] = {}
        for draft in drafts:
            if draft.action.remedy is Remedy.UPSERT:
                self._keys.setdefault(draft.action.target, set()).add(draft.action.key)

    def of(self, draft: ActionDraft) -> Sequence[TableRow]:
        """Return the rows of a draft's key, an equal one in another spelling included.

        Raises:
            RefusedError: the table cannot hold the key.
        """
        name, key = draft.action.target, draft.action.key
        if name not in self._rows:
            self._rows[name] = self._together(name)
        rows = self._rows[name]
        if rows is not None:
            return rows.get(key, ())
        point, session, table = self._sources.table(name)
        return rows_of_key(session, table, point, key, is_exact=False)

    def _together(self, name: str) -> Mapping[str, Sequence[TableRow]] | None:
        """Return the rows of all keys; None: one of them is unfit, and each is asked for alone."""
        point, session, table = self._sources.table(name)
        try:
            return rows_of_many_keys(session, table, point, sorted(self._keys[name]), is_exact=False)
        except RefusedError:
            return None
