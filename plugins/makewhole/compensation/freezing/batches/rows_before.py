"""Read the rows of tables that actions need, of many keys together: those that upserts find, and those of ledgers."""

from collections.abc import Mapping, Sequence

from makewhole.compensation.freezing.sources import Sources
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Remedy
from makewhole.postgres.read.ledger import LedgerRecord, ledger_record
from makewhole.postgres.read.many_keys import ledger_records, rows_of_many_keys
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


class LedgerRows:
    """The rows of ledgers that some actions take their record or row from, by the hop of each."""

    def __init__(self, sources: Sources, drafts: Sequence[ActionDraft]) -> None:
        self._sources = sources
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._keys: dict[tuple[str, Remedy], set[str]] = {}
        self._rows: dict[tuple[str, Remedy], Mapping[str, LedgerRecord] | None] = {}
        for draft in drafts:
            if draft.action.remedy in (Remedy.PRODUCE, Remedy.UPSERT) and draft.origin is None:
                self._keys.setdefault((draft.action.hop, draft.action.remedy), set()).add(draft.action.key)

    def of(self, draft: ActionDraft) -> LedgerRecord | None:
        """Return the row of a draft's key as a record, for an upsert with the compared values; None: it is gone.

        Raises:
            RefusedError: the table cannot hold the key.
        """
        place, key = (draft.action.hop, draft.action.remedy), draft.action.key
        if place not in self._rows:
            self._rows[place] = self._together(*place)
        rows, hop = self._rows[place], self._hops[draft.action.hop]
        if rows is not None:
            return rows.get(key)
        point, session, table = self._sources.table(hop.source)
        return ledger_record(session, table, point, key, hop.semantics, self._compare(draft.action.remedy))

    def _together(self, hop_name: str, remedy: Remedy) -> Mapping[str, LedgerRecord] | None:
        """Return the rows of all keys; None: one of them is unfit, and each is asked for alone."""
        hop, keys = self._hops[hop_name], sorted(self._keys[hop_name, remedy])
        point, session, table = self._sources.table(hop.source)
        try:
            return ledger_records(session, table, point, keys, hop.semantics, self._compare(remedy))
        except RefusedError:
            return None

    def _compare(self, remedy: Remedy) -> Mapping[str, str]:
        return self._sources.pipeline.compare if remedy is Remedy.UPSERT else {}
