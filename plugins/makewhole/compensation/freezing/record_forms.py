"""Hold what a ledger's records look like against those that stand in their topic: record key, headers, and fields.

The records that the last windows read are made once more, from the rows that the ledger has of them: they must have the
keys and headers that they have in the topic, and the fields of their values, or nothing is produced to it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from makewhole.compensation.freezing.placed_record import placed_record
from makewhole.compensation.freezing.record_fields import field_objection
from makewhole.compensation.sources.sources import Sources, ledger_reading
from makewhole.compute.column_values import parse_fields
from makewhole.compute.json_fields import fields_of
from makewhole.compute.keys import KeyProblem
from makewhole.kafka.partitioner import KnownRecord
from makewhole.model.errors import ActionRefusedError, CorruptionError, RefusedError
from makewhole.model.hops import Hop
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.places.record_paths import path_names
from makewhole.model.plan import LINEAGE_PREFIX
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.reading import OpenTable
from makewhole.tables.rows import LedgerRecord
from makewhole.window.formats import format_of

_BY_HAND = "send these records with the system's own producer"


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A record of the topic, the record that the ledger gives for its key, and the ledger's row."""

    known: KnownRecord
    made: LedgerRecord
    row: Mapping[str, Any]


class RecordForms:
    """The forms of the records of ledgers for one plan. What is known of a topic is compared once for each hop."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._objections: dict[str, Refusal | None] = {}

    def require_fitting(self, hop: Hop) -> None:
        """Refuse to produce over a hop whose ledger gives other records than those that stand in its topic.

        Raises:
            RefusedError: their keys, headers or fields differ, or what stands there cannot be read.
        """
        if hop.name not in self._objections:
            self._objections[hop.name] = self._objection(hop)
        objection = self._objections[hop.name]
        if objection is not None:
            raise ActionRefusedError(objection)

    def _objection(self, hop: Hop) -> Refusal | None:
        try:
            known = self._sources.known_keys(hop.target)
        except (CorruptionError, RefusedError) as error:
            return Refusal(RefusalCode.NOT_KNOWN, f"what the records in {hop.target} look like: {error}")
        records = () if known is None else [record for record in known.records if record.business_key is not None]
        if not records:
            return None
        point = self._sources.pipeline.table(hop.source)
        pairs = _Ledger(self._sources, hop).pairs(records)
        own = [pair.known for pair in pairs] or records  # another ledger may send to the topic, too
        fields = [(pair.known.fields, self._made_fields(hop, pair.made.value)) for pair in pairs]
        return (
            _key_objection(hop, point, records, pairs)
            or _header_objection(hop, point, own, pairs)
            or field_objection(hop, point, fields, self._compared(hop))
        )

    def _made_fields(self, hop: Hop, value: bytes | None) -> Mapping[str, str] | None:
        """Return the fields of a record with this value, as its topic would have it; None: none can be made."""
        form = format_of(self._sources.pipeline.topic(hop.target))
        try:
            return None if value is None else fields_of(form.document(form.encode(value), ()))
        except KeyProblem:
            return None

    def _compared(self, hop: Hop) -> set[str]:
        """Return the fields that are compared by value, whatever their types."""
        topic = self._sources.pipeline.topic(hop.target)
        compared = map(topic.column_place, compared_on(self._sources.pipeline, hop))
        places = (*compared, *topic.key, topic.version or "")
        paths = (path_names(place) for place in places if place.startswith("$."))
        return {path[0] for path in paths if len(path) == 1}


class _Ledger:
    """A ledger that is asked for the rows of known records."""

    def __init__(self, sources: Sources, hop: Hop) -> None:
        self._sources, self._hop, self._reading = sources, hop, ledger_reading(sources.pipeline, hop)

    def pairs(self, records: Iterable[KnownRecord]) -> list[_Pair]:
        """Return the last record of each key of which the ledger has a row, with what that gives."""
        last = {record.business_key: record for record in records if record.business_key is not None}
        ledger, pipeline = self._sources.table(self._hop.source), self._sources.pipeline
        read = self._read(ledger, sorted(last))
        made = {key: placed_record(pipeline, self._hop, record) for key, record in read.items()}
        plain = replace(ledger.point, payload=None, record_key=None, headers=())
        rows = self._read(self._sources.table_as(plain), sorted(made))
        return [
            _Pair(known=last[key], made=made[key], row=parse_fields(rows[key].value or b"{}"))
            for key in sorted(made)
            if key in rows
        ]

    def _read(self, ledger: OpenTable, keys: Sequence[str]) -> Mapping[str, LedgerRecord]:
        if not keys:
            return {}
        try:
            return ledger.ledger_records(keys, self._reading)
        except RefusedError:  # one of them is none that the table can hold
            records = {key: self._one(ledger, key) for key in keys}
            return {key: record for key, record in records.items() if record is not None}

    def _one(self, ledger: OpenTable, key: str) -> LedgerRecord | None:
        try:
            return ledger.ledger_record(key, self._reading)
        except RefusedError:
            return None


def _key_objection(
    hop: Hop, point: TablePoint, records: Sequence[KnownRecord], pairs: Sequence[_Pair]
) -> Refusal | None:
    """Return why the ledger's record keys are not those of the topic, with the line to write; None: they are, or
    that is not known."""
    if pairs:
        differing, compared = sum(pair.made.key != pair.known.key for pair in pairs), len(pairs)
    elif point.record_key is None:
        differing = sum(record.key != (record.business_key or "").encode() for record in records)
        compared = len(records)
    else:
        return None
    if not differing:
        return None
    source = "its business key" if point.record_key is None else f"column {point.column_place(point.record_key)}"
    return Refusal(
        RefusalCode.UNFIT,
        f"{differing} of the last {compared} records in {hop.target} have another Kafka key than {source}, "
        f"by which {hop.source} would give it; {_key_remedy(point, pairs)}",
    )


def _key_remedy(point: TablePoint, pairs: Sequence[_Pair]) -> str:
    if pairs and all(pair.known.key == (pair.known.business_key or "").encode() for pair in pairs):
        named = point.column_place(point.record_key or "")
        return f"their key is the business key: take 'record_key: {named}' out at point {point.name}"
    column = _column_of(point, pairs, lambda record: record.key)
    if column is not None:
        return f"write 'record_key: {column}' on point {point.name}, which holds the key of all of them"
    return (
        f"no column of {point.table} holds the key of all of them: write 'record_key: COLUMN' on point {point.name} "
        f"with one that does, or {_BY_HAND}"
    )


def _header_objection(
    hop: Hop, point: TablePoint, records: Sequence[KnownRecord], pairs: Sequence[_Pair]
) -> Refusal | None:
    """Return why the headers of the ledger's records are not those of the topic, with the line to write."""
    named = {name for name, _ in point.headers} | set(point.leave_headers)
    absent = [name for name in _headers_of_all(records) if name not in named]
    if absent:
        lines = ", ".join(f"{name}: {_column_of(point, pairs, _value_of(name)) or 'COLUMN'}" for name in absent)
        return Refusal(
            RefusalCode.UNFIT,
            f"all of the last {len(records)} records in {hop.target} have the headers {', '.join(absent)}, and "
            f"that of {hop.source} would not; write 'headers: {{{lines}}}' on point {point.name}, with a column for "
            f"each or its text in quotes, or 'leave_headers: [{', '.join(absent)}]' if their readers need none of them",
        )
    for name, source in point.headers:
        wrong = sum(_value_of(name)(pair.known) != dict(pair.made.headers).get(name) for pair in pairs)
        if wrong:
            return Refusal(
                RefusalCode.UNFIT,
                f"{wrong} of the last {len(pairs)} records in {hop.target} have another header {name} than "
                f"{source} gives; name what holds it under 'headers' at point {point.name}",
            )
    return None


def _headers_of_all(records: Sequence[KnownRecord]) -> list[str]:
    """Return the names of the headers that every record has, but for those that makewhole writes."""
    of_all = set.intersection(*({name for name, _ in record.headers} for record in records))
    return sorted(name for name in of_all if not name.startswith(LINEAGE_PREFIX))


def _value_of(name: str) -> Callable[[KnownRecord], bytes | None]:
    return lambda record: next((value for header, value in record.headers if header == name), None)


def _column_of(point: TablePoint, pairs: Sequence[_Pair], wanted: Callable[[KnownRecord], bytes | None]) -> str | None:
    """Return the first column of the ledger that holds what is wanted of each of the records; None: none does, or no
    record has a row."""
    names = pairs[0].row if pairs else ()
    return next(
        (
            point.column_place(name)
            for name in names
            if all(_bytes_of_field(pair.row.get(name)) == wanted(pair.known) for pair in pairs)
        ),
        None,
    )


def _bytes_of_field(value: Any) -> bytes | None:
    """Return a field of a row as the bytes that a record would hold; `bytea` is hexadecimal in JSON."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower().encode()
    text = str(value)
    if text.startswith("\\x"):
        with suppress(ValueError):
            return bytes.fromhex(text[2:])
    return text.encode()
