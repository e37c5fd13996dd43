"""Fetch what each drafted action writes, and the rows that it overwrites."""

from collections.abc import Iterable, Sequence
from typing import Any

from makewhole.compensation.freezing.batches.rows_before import LedgerRows, RowsBefore
from makewhole.compensation.freezing.choose_partition import PartitionChooser
from makewhole.compensation.freezing.encoded import encoded
from makewhole.compensation.freezing.fetch_reversals import ReversalFetcher
from makewhole.compensation.freezing.fetch_upserts import UpsertFetcher
from makewhole.compensation.freezing.own_record import require_own_key, require_own_values
from makewhole.compensation.freezing.placed_record import placed_record
from makewhole.compensation.freezing.record_forms import RecordForms
from makewhole.compensation.freezing.survivors import require_rows_as_judged, survivor_first
from makewhole.compensation.planning.action_draft import ActionDraft, RefusedFinding
from makewhole.compensation.sources.source_values import SourceValues
from makewhole.compensation.sources.sources import PayloadFrom, SourceRecord, Sources
from makewhole.lake.record_file import WantedPositions
from makewhole.model.actions import Payload, PayloadExtra
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.plan import LINEAGE_PREFIX
from makewhole.model.points import TablePoint, can_look_up
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window
from makewhole.tables.items import QuarantineExtra, RowsExtra, UpsertExtra
from makewhole.tables.rows import TableRow, ValuedRow
from makewhole.window.masks import mask_of


class Fetcher:
    """The payloads of one plan, read from its sources."""

    def __init__(self, window: Window, sources: Sources) -> None:
        self._window, self._pipeline, self._sources = window, sources.pipeline, sources
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._partitions, self._forms = PartitionChooser(sources), RecordForms(sources)
        self._begin((), NOTHING_REVERSED)

    def _begin(self, drafts: Sequence[ActionDraft], past: PastReversals) -> None:
        """Read what these drafts need, and forget what those before them needed."""
        self._values = SourceValues(self._sources)
        self._reversals = ReversalFetcher(self._window, self._sources, past, self._rows_to_reverse)
        self._erased: dict[str, dict[str, Refusal]] = {}
        self._load_erased(drafts)
        self._values.load(draft.finding for draft in drafts if draft.writes_survivor)
        self._ledger = LedgerRows(self._sources, drafts)
        self._upserts = UpsertFetcher(self._sources, RowsBefore(self._sources, drafts), self._ledger)

    def fetch(
        self, drafts: Sequence[ActionDraft], past: PastReversals = NOTHING_REVERSED
    ) -> tuple[list[tuple[ActionDraft, Payload]], list[RefusedFinding]]:
        """Return those of some drafts that can be done with their payloads, in order, each after those that go before
        it; and each finding that has one which cannot, with its refusal. All drafts of a finding are among them. Copies
        that were taken back before, and keys of which no row agrees with the source, are in neither: those findings
        stay open."""
        self._begin(drafts, past)
        fetched: list[tuple[ActionDraft, Payload]] = []
        refused: dict[tuple[str, str], RefusedFinding] = {}
        for draft in drafts:
            try:
                made = [*(self._fetch(aside) for aside in draft.aside if self._rows(aside)), self._fetch(draft)]
            except RefusedError as error:
                for finding in (draft.finding, *(aside.finding for aside in draft.aside)):
                    refusal = RefusedFinding(hop=finding.hop, key_hash=finding.key_hash, refusal=error.refusal)
                    refused.setdefault((refusal.hop, refusal.key_hash), refusal)
            else:
                fetched += [item for item in made if item is not None]
        return fetched, list(refused.values())

    def _fetch(self, draft: ActionDraft) -> tuple[ActionDraft, Payload] | None:
        self._require_not_erased(draft)
        if draft.action.remedy is Remedy.REVERSE:
            reversal = self._reversals.fetch(draft)
            return None if reversal is None else _fetched(*reversal)
        match draft.action.remedy:
            case Remedy.REDELIVER:
                payload = self._redeliver(draft)
            case Remedy.PRODUCE:
                payload = self._produce(draft)
            case Remedy.UPSERT:
                payload = self._upserts.fetch(draft)
            case _:
                moved = self._quarantine(draft)
                return None if moved is None else _fetched(draft, moved)
        kept_in = PayloadFrom.LEDGER if draft.origin is None else self._original(draft).kept_in
        return _fetched(draft, payload, payload_from=kept_in.value)

    def _load_erased(self, drafts: Sequence[ActionDraft]) -> None:
        """Ask each store once which of the keys that would come to it were erased."""
        asked: dict[str, set[str]] = {}
        for draft in drafts:
            for store in _erasable_at(self._pipeline, draft):
                asked.setdefault(store.name, set()).add(draft.action.key)
        self._erased = {name: self._sources.erased(name, keys) for name, keys in asked.items()}

    def _require_not_erased(self, draft: ActionDraft) -> None:
        stores = _erasable_at(self._pipeline, draft)
        if stores and "erased" in draft.finding.evidence:  # a row of an erased key that is still there, and differs
            raise ActionRefusedError.of(RefusalCode.ERASED, str(draft.finding.evidence["erased"]))
        for store in stores:
            refusal = self._erased[store.name].get(draft.action.key)
            if refusal is not None:
                raise ActionRefusedError(refusal)

    def _redeliver(self, draft: ActionDraft) -> Payload:
        record = self._original(draft)
        return Payload(
            key=record.key,
            value=record.value,
            headers=tuple(header for header in record.headers if not header[0].startswith(LINEAGE_PREFIX)),
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
            extra=PayloadExtra(origin=self._origin(draft)),
        )

    def _produce(self, draft: ActionDraft) -> Payload:
        hop = self._hops[draft.action.hop]
        record = self._ledger.of(draft)
        if record is None:
            raise ActionRefusedError.of(RefusalCode.ERASED, "the ledger has no row of this key any more")
        record = placed_record(self._pipeline, hop, record)
        extra = PayloadExtra(origin="ledger")
        value = None if record.value is None else encoded(self._pipeline.topic(hop.target), record.value)
        payload = Payload(
            key=record.key, value=value, headers=record.headers, timestamp_ms=record.timestamp_ms, extra=extra
        )
        require_own_key(self._pipeline, hop, payload, draft.action.key)
        self._forms.require_fitting(hop)
        require_own_values(self._pipeline, hop, payload, record)
        return self._partitions.choose(hop.target, payload)

    def _quarantine(self, draft: ActionDraft) -> Payload | None:
        """Return the rows of a key, the survivor first; None: no row agrees with the source."""
        self._sources.table(self._hops[draft.action.hop].target).require_quarantine_possible()
        rows, keeps = self._rows(draft), 1 if draft.finding.verdict is Verdict.DUPLICATE else 0
        if len(rows) <= keeps:
            raise ActionRefusedError.of(
                RefusalCode.STALE, f"the key has {len(rows)} rows now; there is nothing to move aside"
            )
        require_rows_as_judged(rows, draft.finding)
        ordered = self._survivor_first(draft, rows)
        if ordered is None:
            return None
        return Payload(key=draft.action.key.encode(), extra=QuarantineExtra(keeps=keeps, rows=tuple(ordered)))

    def _rows_to_reverse(self, draft: ActionDraft) -> list[TableRow] | None:
        return self._survivor_first(draft, self._rows(draft))

    def _rows(self, draft: ActionDraft) -> list[ValuedRow]:
        """Return the rows of a key by time, or the latest version first."""
        hop = self._hops[draft.action.hop]
        store, is_upsert = self._sources.table(hop.target), hop.semantics is Semantics.UPSERT
        return store.valued_rows(compared_on(self._pipeline, hop), draft.action.key, is_latest_first=is_upsert)

    def _survivor_first(self, draft: ActionDraft, rows: Sequence[ValuedRow]) -> list[TableRow] | None:
        """Put the row that stays first; None: no row agrees with the source. Of an unexpected key none stays."""
        ordered: Sequence[ValuedRow] | None = rows
        if not draft.writes_survivor:
            self._require_in_no_table(self._hops[draft.action.hop], draft.action.key)
        elif len(rows) > 1:
            values = self._values.of(draft.finding)
            if values is None:
                raise ActionRefusedError.of(
                    RefusalCode.UNFIT, "the source's latest version deletes this key; delete its rows by hand"
                )
            ordered = survivor_first(rows, values, mask_of(draft.finding))
        return None if ordered is None else [valued.row for valued in ordered]

    def _require_in_no_table(self, hop: Hop, key: str) -> None:
        """Check that no table from which a hop leads into the same store has an unexpected key.

        Raises:
            RefusedError: one has it.
        """
        for other in self._pipeline.hops_into(hop.target):
            is_table = can_look_up(self._pipeline.points[other.source])
            if is_table and self._values.has_row(other, key):
                raise ActionRefusedError.of(
                    RefusalCode.STALE, f"{other.source} has this key; its row in {hop.target} stays"
                )

    def _original(self, draft: ActionDraft) -> SourceRecord:
        return self._sources.record(self._hops[draft.action.hop].source, draft.origin, draft.action.key)

    def _origin(self, draft: ActionDraft) -> str:
        point = self._pipeline.topic(self._hops[draft.action.hop].source)
        assert draft.origin is not None
        return f"{point.topic}/{draft.origin[0]}/{draft.origin[1]}"


def add_originals(pipeline: Pipeline, drafts: Iterable[ActionDraft], wanted: WantedPositions) -> None:
    """Add the positions of the original records that drafts are made of: those of a whole plan are loaded before any
    draft is fetched."""
    for draft in drafts:
        hop = pipeline.hop(draft.action.hop)
        if draft.origin is not None:
            wanted.add(hop.source, draft.origin)
        if draft.repetition is not None:
            wanted.add(hop.target, (draft.repetition.partition, draft.repetition.offset))


def _erasable_at(pipeline: Pipeline, draft: ActionDraft) -> Sequence[TablePoint]:
    """Return the stores to which a draft brings its key and that name erased keys."""
    names = (draft.action.target,) if draft.action.remedy is Remedy.UPSERT else draft.action.before.erasable
    points = (pipeline.points[name] for name in names)
    return [point for point in points if can_look_up(point) and point.erased is not None]


def _fetched(draft: ActionDraft, payload: Payload, **fields: Any) -> tuple[ActionDraft, Payload]:
    """Add to the action the origin of its payload, whether it locks its table, and the places of the rows found."""
    extra = payload.extra
    if isinstance(extra, RowsExtra):
        fields["rows"] = tuple(row.ctid for row in extra.rows)
    if isinstance(extra, UpsertExtra):
        fields["locks_table"] = extra.locks_table
    return draft.with_before(origin=extra.origin, **fields), payload
