"""Hold a record that is produced to the ledger's row that it stands for, as the topic would read it."""

from decimal import Decimal

from makewhole.compensation.sources.sources import SourceRecord, business_key, decoded
from makewhole.compute.versions import version_of_canonical
from makewhole.model.actions import Payload
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.refusal import RefusalCode
from makewhole.tables.rows import LedgerRecord, differing_columns
from makewhole.window.context import value_shape


def require_own_key(pipeline: Pipeline, hop: Hop, payload: Payload, key: str) -> None:
    """Refuse a record that its topic would read with another business key than the one that it stands for.

    Raises:
        RefusedError: it has another key, or none.
    """
    point = pipeline.topic(hop.target)
    if business_key(point, _as_record(payload)) != key:
        raise ActionRefusedError.of(
            RefusalCode.UNFIT,
            f"as the record that {hop.source} gives it would not have this key in {point.name}, which reads it "
            f"from {', '.join(point.key)}: name the columns that hold the record, `record_key` and `payload`, at "
            f"points.{hop.source}",
        )


def require_own_values(pipeline: Pipeline, hop: Hop, payload: Payload, row: LedgerRecord) -> None:
    """Refuse a record that would not compare equal to the row that it is judged by.

    Raises:
        RefusedError: it would differ, in these columns.
    """
    point, compared = pipeline.topic(hop.target), compared_on(pipeline, hop)
    fields = decoded(_as_record(payload), value_shape(pipeline, point))
    of_row = {name: text for name, _, text in row.compared if name in compared}
    sent = {name: fields[f"c:{name}"] for name in compared}
    differing = [*differing_columns(sent, of_row), *_differing_version(pipeline, hop, fields["version"], row)]
    if differing:
        raise ActionRefusedError.of(
            RefusalCode.DISPUTED,
            f"the record that {hop.source} gives has another value than its row in {', '.join(differing)}, "
            f"and would be mismatched in {point.name} for ever; correct the row, or the column that is named under "
            f"`payload` at points.{hop.source}, then run this window again",
        )


def _differing_version(pipeline: Pipeline, hop: Hop, sent: Decimal | None, row: LedgerRecord) -> list[str]:
    """Return the column of the row's version where the record has another one, by which it would be judged."""
    column = pipeline.points[hop.source].version
    if hop.semantics is not Semantics.UPSERT or column is None or sent is None:
        return []
    own = [version_of_canonical(text, declared) for name, declared, text in row.compared if name == column]
    return [column] if own and own[0] != sent and column not in compared_on(pipeline, hop) else []


def _as_record(payload: Payload) -> SourceRecord:
    return SourceRecord(
        partition=-1,
        offset=-1,
        key=payload.key,
        value=payload.value,
        headers=payload.headers,
        timestamp_ms=payload.timestamp_ms,
    )
