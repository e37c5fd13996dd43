"""Fetch the values that upserts write into tables, and the rows that they overwrite."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from makewhole.compensation.freezing.row_to_write import VersionToWrite, differing_row, missing_row
from makewhole.compensation.freezing.survivors import require_values_as_judged
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.compensation.sources.sources import SourceRecord, Sources
from makewhole.compute.column_values import ColumnValue, as_object, parse_fields
from makewhole.compute.decode.read_record import ReadRecord
from makewhole.compute.decode.record_values import top_fields
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import UNREADABLE
from makewhole.model.actions import Payload
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.points import KeyType, Point, TablePoint, TopicPoint, has_log
from makewhole.model.refusal import RefusalCode
from makewhole.model.verdict import Verdict
from makewhole.tables.description import TEXTS
from makewhole.tables.items import RowToWrite, UpsertExtra
from makewhole.tables.new_row import NewRow, new_row, version_type
from makewhole.tables.rows import LedgerRecord, ValuedRow
from makewhole.window.formats import format_of, record_key_format_of
from makewhole.window.masks import mask_of

ColumnValues = Mapping[str, ColumnValue]


class RowsOfKeys(Protocol):
    """The rows that upserts find in their tables."""

    def of(self, draft: ActionDraft) -> Sequence[ValuedRow]:
        """Return the rows of a draft's key."""
        ...


class LedgerRecords(Protocol):
    """The rows of ledgers that upserts take their values from."""

    def of(self, draft: ActionDraft) -> LedgerRecord | None:
        """Return the row of a draft's key with its compared columns; None: it is gone."""
        ...


class _VersionColumn(NamedTuple):
    """The column that keeps newer rows from being written over, and its declared type."""

    column: str
    declared: str


class _TakenColumns(NamedTuple):
    """The values that a hop takes from a source: the declared types of columns, the types of the table's, the column
    that guards its versions, and the places of the keys that keep the source's encoding."""

    declared: Mapping[str, str]
    types: Mapping[str, str]
    guard: _VersionColumn | None
    key_places: Mapping[str, str]

    def value(self, name: str, raw: Any, absent: str | None) -> ColumnValue:
        """Return what a record has for a column; `absent`: the place at which it has nothing."""
        return ColumnValue.of_record(raw, self.declared[name], self.types[name], absent)


class UpsertFetcher:
    """The payloads of the upserts among some drafts."""

    def __init__(self, sources: Sources, before: RowsOfKeys, ledger: LedgerRecords) -> None:
        self._sources, self._pipeline = sources, sources.pipeline
        self._before, self._ledger = before, ledger
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._new: dict[str, NewRow] = {}

    def fetch(self, draft: ActionDraft) -> Payload:
        """Return what a draft writes.

        Raises:
            RefusedError: it cannot be written, or the store is not as the finding says any more.
        """
        hop = self._hops[draft.action.hop]
        values, keys, origin = self._values(draft, hop)
        before = self._before.of(draft)
        _require_as_judged(draft, before)
        row = self._row_to_write(hop, values, before)
        if before:
            compared = set(row.columns) & set(compared_on(self._pipeline, hop))
            require_values_as_judged(before[0], compared, draft.finding, mask_of(draft.finding))
        return Payload(
            key=draft.action.key.encode(),
            value=as_object(values, keys),
            extra=UpsertExtra(
                origin=origin,
                rows=tuple(valued.row for valued in before),
                locks_table=not before and self._sources.table(hop.target).locks_for_new_rows,
                **vars(row),
            ),
        )

    def _row_to_write(self, hop: Hop, values: ColumnValues, before: Sequence[ValuedRow]) -> RowToWrite:
        store = self._sources.table(hop.target)
        point, version = store.point, None
        if point.version is not None and point.version in self._new_row(hop).declared:
            version = VersionToWrite(column=point.version, unit=self._pipeline.version_unit(hop))
        if not before:
            return missing_row(self._new_row(hop), values, hop.name, version)
        return differing_row(store.description, values, compared_on(self._pipeline, hop), version, before[0])

    def _new_row(self, hop: Hop) -> NewRow:
        if hop.name not in self._new:
            store, source = self._sources.table(hop.target), self._pipeline.points[hop.source]
            self._new[hop.name] = new_row(store.description, hop, source, store.point, compared_on(self._pipeline, hop))
        return self._new[hop.name]

    def _values(self, draft: ActionDraft, hop: Hop) -> tuple[ColumnValues, Mapping[str, str], str]:
        """Return the values of the source by column of the table, the texts of key columns that keep the source's
        encoding, and where all of them come from."""
        source = self._pipeline.points[hop.source]
        wanted = _TakenColumns(
            declared=self._new_row(hop).declared,
            types=self._sources.table(hop.target).description.base_types,
            guard=self._guard(hop),
            key_places=self._key_places(hop, source),
        )
        if has_log(source):
            record = self._sources.record(hop.source, draft.origin, draft.action.key)
            values, keys = _of_record(record, source, wanted)
            return values, keys, f"{source.topic}/{record.partition}/{record.offset}"
        values, keys = self._of_ledger(draft, source, wanted)
        return values, keys, "ledger"

    def _guard(self, hop: Hop) -> _VersionColumn | None:
        store = self._sources.table(hop.target)
        version = store.point.version
        return None if version is None else _VersionColumn(version, version_type(store.description, version))

    def _key_places(self, hop: Hop, source: Point) -> dict[str, str]:
        """Return the key columns of texts that are read as another type, each with the place of its part in the source:
        of several texts of one key the table gets the source's."""
        store = self._sources.table(hop.target)
        point, columns = store.point, store.description.columns
        if not point.key_layout:  # texts as they are
            return {}
        return {
            column: place
            for column, kind, place in zip(point.key, point.key_layout, source.key, strict=True)
            if kind is not KeyType.STRING and columns[column].base_type in TEXTS
        }

    def _of_ledger(
        self, draft: ActionDraft, source: TablePoint, wanted: _TakenColumns
    ) -> tuple[ColumnValues, Mapping[str, str]]:
        version = None if wanted.guard is None else wanted.guard.column
        record = self._ledger.of(draft)
        if record is None:
            raise ActionRefusedError.of(RefusalCode.ERASED, "the source table has no row of this key any more")
        fields = parse_fields(record.value or b"")
        texts = {name: text for name, _, text in record.compared}
        names = {name: source.version if name == version and source.version else name for name in wanted.declared}
        values = {
            name: ColumnValue(
                declared=kind, column=wanted.types[name], raw=fields.get(names[name]), text=texts[names[name]]
            )
            for name, kind in wanted.declared.items()
        }
        values = _with_guard(values, fields, wanted)
        return values, {column: _key_text(fields.get(place)) for column, place in wanted.key_places.items()}


def _of_record(
    record: SourceRecord, source: TopicPoint, wanted: _TakenColumns
) -> tuple[ColumnValues, Mapping[str, str]]:
    if record.value is None:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, "the latest version is a tombstone; upsert writes rows and deletes none"
        )
    headers = [{"key": name, "value": value} for name, value in record.headers]
    places = top_fields(map(source.column_place, wanted.declared))
    read = ReadRecord(
        fields=parse_fields(record.value, places, format_of(source), headers),
        record_key=record.key,
        headers=headers,
        read_key=record_key_format_of(source).read,
        coordinates=record.coordinates,
    )
    guard = wanted.guard
    names = {*wanted.declared, *([] if guard is None else [guard.column])}
    raws = {name: _raw_value(read, source.column_place(name)) for name in names}
    if guard is not None and source.version is not None:
        raws[guard.column] = _raw_version(read, source.version)
    places_of_null = {name: source.column_place(name) for name, raw in raws.items() if raw is None}
    absent = {name: place for name, place in places_of_null.items() if not read.has(place)}
    values = {name: wanted.value(name, raws[name], absent.get(name)) for name in wanted.declared}
    values = _with_guard(values, raws, wanted)
    return values, {column: _key_text(read.part(place)) for column, place in wanted.key_places.items()}


def _raw_value(record: ReadRecord, place: str) -> Any:
    """Return what a record has for a column; None: nothing."""
    try:
        return record.column(place)
    except KeyProblem as problem:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the record's {problem}") from None


def _raw_version(record: ReadRecord, place: str) -> Any:
    """Return the version as a record has it; None: it has none."""
    number = record.version(place)
    if number == UNREADABLE:
        raise ActionRefusedError.of(
            RefusalCode.NOT_KNOWN, f"what {place} of the record holds is no version (see `version`)"
        )
    return None if number is None else record.part(place)


def _with_guard(values: ColumnValues, fields: Mapping[str, Any], wanted: _TakenColumns) -> dict[str, ColumnValue]:
    """Add the field of the version's name where the source names no version: it is compared with the row's, and never
    written."""
    guard = wanted.guard
    if guard is None or guard.column in values:
        return dict(values)
    value = ColumnValue.of_record(fields.get(guard.column), guard.declared, wanted.types[guard.column])
    return {**values, guard.column: value}


def _key_text(raw: Any) -> str:
    return str(raw).lower() if isinstance(raw, bool) else str(raw)


def _require_as_judged(draft: ActionDraft, before: Sequence[ValuedRow]) -> None:
    """Refuse an action when the store is not as the finding says any more."""
    if draft.finding.verdict is not Verdict.MISMATCHED:
        if before:
            raise ActionRefusedError.of(RefusalCode.ARRIVED, "a row of this key is there now")
    elif not before:
        raise ActionRefusedError.of(RefusalCode.ERASED, "the row of this key is gone")
    elif len(before) > 1:
        raise ActionRefusedError.of(RefusalCode.STALE, "the key has several rows now; move the extra ones aside first")
