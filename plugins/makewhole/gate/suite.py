"""Plan the expectations of a window as data; the validation library is not called here.

Layer A is on the keyed frame, one row per hop and key that is not clean. Layer B is on one row of numbers per hop, and
one of the logs' incidents. Every number gets two expectations, not-null and between, because "between" alone accepts a
null.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from makewhole.gate.counts import agreement_numbers, identity_numbers, verdict_numbers
from makewhole.gate.frame import FrameCounts
from makewhole.gate.planned_expectation import HIGHEST, Number, Planned, Role
from makewhole.gate.points import alone_numbers, point_numbers
from makewhole.gate.summary import HopSummary
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import Duplicates, Verdict

_BLOCKING = (
    IncidentKind.TRUNCATED,
    IncidentKind.TOPIC_RECREATED,
    IncidentKind.HANGING_TRANSACTION,
    IncidentKind.GROUP_UNKNOWN,
    IncidentKind.GROUP_OUT_OF_RANGE,
    IncidentKind.PROGRESS_UNKNOWN,
    IncidentKind.PROGRESS_OUT_OF_RANGE,
)
_LISTED_AT_MOST = 3


@dataclass(frozen=True, kw_only=True)
class HopSuite:
    """Layer B of one hop: a row of numbers and the expectations on it."""

    hop: str
    numbers: tuple[Number, ...]

    @property
    def name(self) -> str:
        """The hop's name."""
        return self.hop

    @cached_property
    def row(self) -> dict[str, int | None]:
        """The row: column to number."""
        return {number.name: number.value for number in self.numbers}

    @cached_property
    def planned(self) -> tuple[Planned, ...]:
        """Two expectations per number, in the numbers' order."""
        return tuple(planned for number in self.numbers for planned in number.planned(self.hop))


def frame_suite(summaries: Sequence[HopSummary]) -> tuple[Planned, ...]:
    """Plan layer A: rows = distinct (hop, key) = the number from independent evidence without the clean keys, so no key
    is lost or repeats."""
    rows = sum((summary.expected_rows or 0) - summary.clean for summary in summaries)
    columns = ("hop", "key_hash", "verdict")
    sets = {"hop": [summary.hop for summary in summaries], "verdict": [verdict.value for verdict in Verdict]}
    return (
        _of_frame(
            "rows",
            "expect_table_row_count_to_equal",
            {"value": rows},
            f"{{found}} rows were judged, the snapshots hold {rows:,} keys" + _but_clean(summaries),
        ),
        *(
            _of_frame(
                f"{column} not null",
                "expect_column_values_to_not_be_null",
                {"column": column},
                f"{{found}} rows have no {column}",
            )
            for column in columns
        ),
        *(
            _of_frame(
                f"{column} in set",
                "expect_column_values_to_be_in_set",
                {"column": column, "value_set": allowed},
                f"{{found}} rows have a {column} that does not exist",
            )
            for column, allowed in sets.items()
        ),
        _of_frame(
            "keys unique",
            "expect_column_unique_value_count_to_be_between",
            {"column": "hop_key", "min_value": rows, "max_value": rows},
            f"{{found}} distinct keys were judged, the snapshots hold {rows:,}: some key repeats or is lost"
            + _but_clean(summaries),
        ),
    )


def _but_clean(summaries: Sequence[HopSummary]) -> str:
    clean = sum(summary.clean for summary in summaries)
    return f" besides {clean:,} clean ones" if clean else ""


def _of_frame(name: str, type_: str, kwargs: Mapping[str, Any], sentence: str) -> Planned:
    return Planned(
        id=f"verdicts {name}", type=type_, kwargs=kwargs, role=Role.EVIDENCE, sentence=f"verdicts: {sentence}"
    )


def hop_suite(pipeline: Pipeline, summary: HopSummary, frame: FrameCounts | None = None) -> HopSuite:
    """Plan layer B of one hop; with `frame`, its numbers are also compared with the keyed frame's."""
    numbers = [
        *point_numbers(pipeline, summary),
        *verdict_numbers(pipeline, summary),
        *identity_numbers(summary),
    ]
    if frame is not None:
        numbers += agreement_numbers(summary, frame)
    return HopSuite(hop=summary.hop, numbers=tuple(numbers))


def topic_suite(pipeline: Pipeline, summary: HopSummary) -> HopSuite:
    """Plan the numbers of a topic that no hop joins: it was read completely. Its keys with several records are among
    the incidents of logs."""
    return HopSuite(hop=summary.hop, numbers=tuple(alone_numbers(pipeline, summary)))


def incident_suite(pipeline: Pipeline, incidents: Sequence[Incident]) -> HopSuite:
    """Plan one number per kind of incident that can block; offsets never read are counted with their point."""
    blocking = [incident for incident in incidents if incident.blocks(pipeline) and not incident.is_partial]
    numbers = tuple(
        _incident_number(kind, [incident for incident in blocking if incident.kind is kind]) for kind in _BLOCKING
    )
    return HopSuite(hop="logs", numbers=(*numbers, *_repeated_numbers(pipeline, incidents)))


def _repeated_numbers(pipeline: Pipeline, incidents: Sequence[Incident]) -> Iterator[Number]:
    """Yield the number of keys with several records of each topic of which the file asks for it."""
    counted = {incident.point: incident for incident in incidents if incident.kind is IncidentKind.REPEATED_KEYS}
    for point in pipeline.ordered_points():
        if has_log(point) and point.duplicates is not None:
            incident, is_refused = counted.get(point.name), point.duplicates is Duplicates.REFUSED
            yield Number(
                name=f"{IncidentKind.REPEATED_KEYS.value}_{point.name}",
                value=None if incident is None else incident.detail["keys"],
                at_most=0 if is_refused else HIGHEST,
                sentence=f"the keys of {point.topic} were not counted"
                if incident is None
                else incident_sentence(incident),
                role=Role.FINDING if is_refused else Role.NOTE,
            )


def _incident_number(kind: IncidentKind, incidents: Sequence[Incident]) -> Number:
    listed = "; ".join(incident_sentence(incident) for incident in incidents[:_LISTED_AT_MOST])
    more = f"; and {len(incidents) - _LISTED_AT_MOST} more" if len(incidents) > _LISTED_AT_MOST else ""
    return Number(
        name=kind.value,
        value=len(incidents),
        at_most=0,
        sentence=f"{listed}{more}" if incidents else f"nothing is {kind.value}",
        role=Role.FINDING,
    )
