"""Fetch the copies that reversals take back, and render the reversals from them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from makewhole.compensation.freezing.encoded import encoded
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.compensation.planning.extra_copies import left_to_reverse, row_copy
from makewhole.compensation.sources.sources import PayloadFrom, SourceRecord, Sources, business_key, ledger_reading
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem, key_hash
from makewhole.config.template import exact_json
from makewhole.config.template.reversal import Rendered, Template, names_of, scope_of
from makewhole.model.actions import Payload
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop, Reverse
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import REVERSES_HEADER
from makewhole.model.points import TopicPoint, has_log
from makewhole.model.refusal import RefusalCode
from makewhole.model.reversal import PastReversals, Repetition
from makewhole.model.window import Window
from makewhole.tables.items import RowsExtra
from makewhole.tables.keys import key_components
from makewhole.tables.rows import TableRow
from makewhole.window.formats import format_of

RowsSurvivorFirst = Callable[[ActionDraft], Sequence[TableRow] | None]
"""Read the rows of a draft's key, the survivor first; None: no row agrees with the source."""


@dataclass(frozen=True, kw_only=True)
class _ExtraCopy:
    """A copy to take back. `number` counts the key's copies from 1, `place` names it in the header, `identity` is
    `ReversedCopy.copy`; `fields` decodes it."""

    number: int
    place: str
    identity: Mapping[str, Any]
    fields: Callable[[], Any]
    rows: tuple[TableRow, ...] = ()


class ReversalFetcher:
    """The reversals of one plan, rendered from their sources."""

    def __init__(
        self, window: Window, sources: Sources, past: PastReversals, rows_of: RowsSurvivorFirst | None = None
    ) -> None:
        """Take `rows_of` to read the rows of a draft's key; without it they are in the order of their times."""
        self._window, self._sources, self._past, self._rows_of = window, sources, past, rows_of
        self._pipeline = sources.pipeline
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}
        self._templates: dict[str, Template] = {}
        self._rows: dict[tuple[str, str], Sequence[_ExtraCopy]] = {}

    def fetch(self, draft: ActionDraft) -> tuple[ActionDraft, Payload] | None:
        """Return a draft with what is known of its copy, and its reversal; None: this was taken back before.

        Raises:
            RefusedError: the copy is not what was judged, or the template does not fit it.
        """
        hop = self._hops[draft.action.hop]
        assert hop.reverse is not None
        copy = self._copy(draft, hop)
        if copy is None:
            return None
        rendered = self._template(hop).render(self._scope(draft, hop, copy))
        rendered = replace(rendered, value=encoded(self._pipeline.topic(hop.reverse.to), rendered.value))
        headers = (*rendered.headers, (REVERSES_HEADER, copy.place.encode()))
        extra = RowsExtra(origin=PayloadFrom.TEMPLATE.value, rows=copy.rows)
        point = self._pipeline.points[hop.target]
        draft = draft.with_before(
            payload_from=PayloadFrom.TEMPLATE.value,
            of=point.place,
            of_identity=point.identity,
            copy=copy.identity,
            reversal_key_hash=self._own_key_hash(hop, hop.reverse, rendered, draft),
        )
        return draft, Payload(key=rendered.key, value=rendered.value, headers=headers, extra=extra)

    def _template(self, hop: Hop) -> Template:
        assert hop.reverse is not None
        if hop.name not in self._templates:
            self._templates[hop.name] = Template(hop.reverse)
        return self._templates[hop.name]

    def _copy(self, draft: ActionDraft, hop: Hop) -> _ExtraCopy | None:
        if draft.repetition is not None:
            return self._record(draft, hop, draft.repetition)
        hop_key = (hop.name, draft.finding.key_hash)
        if hop_key not in self._rows:
            self._rows[hop_key] = self._rows_left(draft, hop)
        left = self._rows[hop_key]
        return left[draft.extra] if draft.extra < len(left) else None

    def _record(self, draft: ActionDraft, hop: Hop, copy: Repetition) -> _ExtraCopy:
        point = self._pipeline.topic(hop.target)
        record = self._sources.record(hop.target, (copy.partition, copy.offset), draft.action.key)
        return _ExtraCopy(
            number=copy.number,
            place=f"{point.name}/{point.topic}/{copy.partition}/{copy.offset}",
            identity={"partition": copy.partition, "offset": copy.offset},
            fields=partial(_value, format_of(point), record),
        )

    def _rows_left(self, draft: ActionDraft, hop: Hop) -> Sequence[_ExtraCopy]:
        store = self._sources.table(hop.target)
        point, table = store.point, store.description
        if self._rows_of is None:
            rows: Sequence[TableRow] | None = store.rows_of_key(draft.action.key)
        else:
            rows = self._rows_of(draft)
        if rows is None:
            return []
        return [
            _ExtraCopy(
                number=number,
                place=f"{point.name}/{table.schema}.{table.name}/{row.ctid}",
                identity=row_copy(row, rows, point),
                fields=partial(exact_json.loads, row.text),
                rows=(row,),
            )
            for number, row in left_to_reverse(rows, draft.finding, point, self._past)
        ]

    def _scope(self, draft: ActionDraft, hop: Hop, copy: _ExtraCopy) -> dict[str, Any]:
        assert hop.reverse is not None
        parts = key_components(draft.action.key, self._pipeline.points[hop.target].key)
        wanted = names_of(hop.reverse)
        data: dict[str, Any] = {
            "key": parts[0] if len(parts) == 1 else list(parts),
            "finding": {
                "copies": draft.finding.evidence["target_copies"],
                "copy": copy.number,
                "place": copy.place,
            },
        }
        if "row" in wanted:
            data["row"] = copy.fields()
        if "source" in wanted:
            data["source"] = self._source(draft, hop)
        return scope_of(self._pipeline, self._window, draft.finding, data)

    def _source(self, draft: ActionDraft, hop: Hop) -> dict[str, Any]:
        """Return the fields of the key's record or row upstream."""
        if has_log(self._pipeline.points[hop.source]):
            source = self._pipeline.topic(hop.source)
            return _record_fields(source, self._sources.record(hop.source, draft.origin, draft.action.key))
        ledger = self._sources.table(hop.source)
        record = ledger.ledger_record(draft.action.key, ledger_reading(self._pipeline, hop))
        if record is None:
            raise ActionRefusedError.of(RefusalCode.ERASED, "the source table has no row of this key any more")
        return {
            **_decodable_texts({"key": record.key}),
            "value": _template_value(JSON, record.value, ()),
            "timestamp_ms": record.timestamp_ms,
        }

    def _own_key_hash(self, hop: Hop, reverse: Reverse, rendered: Rendered, draft: ActionDraft) -> str | None:
        """Return the hash of the reversal's own key where its topic is judged: it must not be unexpected there.

        Raises:
            RefusedError: the reversal would be one more copy of the key that it takes back.
        """
        point = self._pipeline.points[reverse.to]
        if point not in self._pipeline.ordered_points() or not has_log(point):
            return None
        record = SourceRecord(
            partition=0, offset=0, key=rendered.key, value=rendered.value, headers=rendered.headers, timestamp_ms=None
        )
        key = business_key(point, record)
        if key == draft.action.key and _leads_to(self._pipeline, point.name, hop.target):
            raise ActionRefusedError.of(
                RefusalCode.UNFIT,
                f"in {point.name} the reversal would be one more copy of the key that it takes back; give it a "
                "key of its own, or send it to a topic of its own",
            )
        return None if key is None else key_hash(key)


def _leads_to(pipeline: Pipeline, start: str, goal: str) -> bool:
    goal_place = pipeline.place_of(goal)
    return any(pipeline.place_of(point) == goal_place for point in pipeline.from_here_on(start))


def _record_fields(point: TopicPoint, record: SourceRecord) -> dict[str, Any]:
    return {
        **_decodable_texts({"key": record.key}),
        "value": _value(format_of(point), record),
        "headers": _decodable_texts(dict(record.headers)),
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
    }


def _decodable_texts(values: Mapping[str, bytes | None]) -> dict[str, str | None]:
    """Decode the values that are text, or null. The others are left out: a template that names them is refused."""
    texts: dict[str, str | None] = {}
    for name, value in values.items():
        with suppress(UnicodeDecodeError):
            texts[name] = None if value is None else value.decode()
    return texts


def _value(form: ValueFormat, record: SourceRecord) -> Any:
    return _template_value(form, record.value, [{"key": name, "value": value} for name, value in record.headers])


def _template_value(form: ValueFormat, value: bytes | None, headers: Headers) -> Any:
    try:
        return form.template_value(value, headers)
    except KeyProblem as problem:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the record's {problem}") from None
