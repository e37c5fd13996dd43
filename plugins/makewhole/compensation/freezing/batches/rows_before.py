"""Read the rows of tables that actions need, of many keys together: those that upserts find, and those of ledgers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.compensation.sources.sources import Sources, ledger_reading
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.hops import Hop, Remedy
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.refusal import RefusalCode
from makewhole.tables.new_row import version_type
from makewhole.tables.reading import OpenTable
from makewhole.tables.rows import LedgerRecord, ValuedRow


class RowsBefore:
    """The rows of the keys of some upserts, with the values that may be written, by the hop of each."""

    def __init__(self, sources: Sources, drafts: Sequence[ActionDraft]) -> None:
        self._sources = sources
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._keys: dict[str, set[str]] = {}
        self._rows: dict[str, Mapping[str, Sequence[ValuedRow]] | None] = {}
        for draft in drafts:
            if draft.action.remedy is Remedy.UPSERT:
                self._keys.setdefault(draft.action.hop, set()).add(draft.action.key)

    def of(self, draft: ActionDraft) -> Sequence[ValuedRow]:
        """Return the rows of a draft's key, an equal one in another encoding included.

        Raises:
            RefusedError: the table cannot hold the key.
        """
        hop, key = draft.action.hop, draft.action.key
        if hop not in self._rows:
            self._rows[hop] = self._together(hop)
        rows = self._rows[hop]
        if rows is not None:
            return rows.get(key, ())
        return self._store(hop).valued_rows(self._compared(hop), key, is_exact=False)

    def _together(self, hop: str) -> Mapping[str, Sequence[ValuedRow]] | None:
        """Return the rows of all keys; None: one of them is unfit, and each is asked for alone."""
        try:
            return self._store(hop).valued_rows_of_many(self._compared(hop), sorted(self._keys[hop]), is_exact=False)
        except RefusedError:
            return None

    def _store(self, hop: str) -> OpenTable:
        return self._sources.table(self._hops[hop].target)

    def _compared(self, hop: str) -> Mapping[str, str]:
        return _with_version(self._store(hop), compared_on(self._sources.pipeline, self._hops[hop]))


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
        """Return the row of a draft's key as a record, with the compared values; None: it is gone.

        Raises:
            RefusedError: the table cannot hold the key, or the row does not pass the filter of the hop any more.
        """
        record, hop = self._find(draft), self._hops[draft.action.hop]
        if record is not None and not record.passes:
            raise ActionRefusedError.of(
                RefusalCode.STALE, f"the row of this key in {hop.source} has left the filter `{hop.where}` by now"
            )
        return record

    def _find(self, draft: ActionDraft) -> LedgerRecord | None:
        place, key = (draft.action.hop, draft.action.remedy), draft.action.key
        if place not in self._rows:
            self._rows[place] = self._together(*place)
        rows, hop = self._rows[place], self._hops[draft.action.hop]
        if rows is not None:
            return rows.get(key)
        ledger, columns = self._asked(hop, draft.action.remedy)
        return ledger.ledger_record(key, ledger_reading(self._sources.pipeline, hop, columns))

    def _together(self, hop_name: str, remedy: Remedy) -> Mapping[str, LedgerRecord] | None:
        """Return the rows of all keys; None: one of them is unfit, and each is asked for alone."""
        hop, keys = self._hops[hop_name], sorted(self._keys[hop_name, remedy])
        ledger, columns = self._asked(hop, remedy)
        try:
            return ledger.ledger_records(keys, ledger_reading(self._sources.pipeline, hop, columns))
        except RefusedError:
            return None

    def _asked(self, hop: Hop, remedy: Remedy) -> tuple[OpenTable, Mapping[str, str]]:
        """Return the table that is asked, and the columns whose canonical texts are wanted: the compared ones, the
        version, and for an upsert those of its row, which takes nothing from a payload."""
        ledger = self._sources.table(hop.source)
        columns = _with_version(ledger, compared_on(self._sources.pipeline, hop))
        if remedy is Remedy.UPSERT:
            columns = {**columns, **hop.write}
            ledger = self._sources.table_as(replace(ledger.point, payload=None))
        absent = [name for name in columns if name not in ledger.description.columns]
        if absent:
            table = ledger.point.table
            raise ActionRefusedError.of(RefusalCode.UNFIT, f"{table} has no column {', '.join(absent)} any more")
        return ledger, columns


def _with_version(table: OpenTable, compare: Mapping[str, str]) -> Mapping[str, str]:
    """Return the columns to compare with the version of the table, by their declared types."""
    version = table.point.version
    return dict(compare) if version is None else {version: version_type(table.description, version), **compare}
