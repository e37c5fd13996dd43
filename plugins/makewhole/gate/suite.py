"""What is expected of a window, as data: nothing here calls the validation library.

Layer A is asked of the keyed frame, one row per hop and key. Layer B is asked of one row of numbers per hop. Every
number gets two expectations, not-null and between, because "between" alone is content with a null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.gate.counts import agreement_numbers, identity_numbers, verdict_numbers
from makewhole.gate.frame import FrameCounts
from makewhole.gate.planned import Number, Planned, Role
from makewhole.gate.points import point_numbers
from makewhole.gate.summary import HopSummary
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class HopSuite:
    """Layer B of one hop: the row and what is expected of it."""

    hop: str
    numbers: tuple[Number, ...]

    @property
    def row(self) -> dict[str, int | None]:
        """Column to number."""
        return {number.name: number.value for number in self.numbers}

    @property
    def planned(self) -> tuple[Planned, ...]:
        """Two expectations per number, in the numbers' order."""
        return tuple(planned for number in self.numbers for planned in number.planned(self.hop))


def frame_suite(summaries: Sequence[HopSummary]) -> tuple[Planned, ...]:
    """Layer A. Rows = distinct (hop, key) = the number from independent evidence: no key is lost and none repeats."""
    rows = sum(summary.expected_rows or 0 for summary in summaries)
    columns = ("hop", "key_hash", "verdict")
    sets = {"hop": [summary.hop for summary in summaries], "verdict": [verdict.value for verdict in Verdict]}
    return (
        _of_frame(
            "rows",
            "expect_table_row_count_to_equal",
            {"value": rows},
            f"{{found}} rows were judged, the snapshots hold {rows:,} keys",
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
            f"{{found}} distinct keys were judged, the snapshots hold {rows:,}: some key repeats or is lost",
        ),
    )


def _of_frame(name: str, type_: str, kwargs: Mapping[str, Any], sentence: str) -> Planned:
    return Planned(
        id=f"verdicts {name}", type=type_, kwargs=kwargs, role=Role.EVIDENCE, sentence=f"verdicts: {sentence}"
    )


def hop_suite(pipeline: Pipeline, summary: HopSummary, frame: FrameCounts | None = None) -> HopSuite:
    """Layer B of one hop; with `frame`, the numbers are also laid beside the keyed frame's."""
    numbers = [
        *point_numbers(pipeline, summary),
        *verdict_numbers(pipeline.gate, summary),
        *identity_numbers(summary),
    ]
    if frame is not None:
        numbers += agreement_numbers(summary, frame)
    return HopSuite(hop=summary.hop, numbers=tuple(numbers))
