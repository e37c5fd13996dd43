"""Evaluate the gate's expectations on few rows in plain Python, as Great Expectations does.

The library takes a tenth of a second for a window, a quarter of what a window of twenty rows costs. Tests of the gate,
the windows on Spark, the lab, the histories and the DAGs ask it; tests of what a window finds need its answer alone.
That both give the same is tested in tests/integration/gate/test_plain_gate.py and spark/test_carriers.py beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from makewhole.gate import expectations
from makewhole.gate.expectations import ExpectationOutcome, SuiteRun
from makewhole.gate.planned_expectation import Planned


def evaluate_plainly(patch: pytest.MonkeyPatch) -> None:
    """Have expectations on pandas frames evaluated here for as long as the patch holds."""
    patch.setattr(expectations, "_run_in_pandas", run_in_pandas)


def run_in_pandas(
    name: str, frame: pd.DataFrame, planned: Sequence[Planned], result_format: Mapping[str, Any]
) -> tuple[SuiteRun, Sequence[Any]]:
    """Stand for the function of the gate with this name. The library answers column by column."""
    columns = list(dict.fromkeys(expectation.kwargs.get("column") for expectation in planned))
    planned = sorted(planned, key=lambda expectation: columns.index(expectation.kwargs.get("column")))
    results = [_result(expectation, frame, result_format) for expectation in planned]
    failed = {expectation.severity for expectation, result in zip(planned, results, strict=True) if not result.success}
    outcomes = tuple(
        ExpectationOutcome(id=expectation.id, success=result.success, found=_found(result))
        for expectation, result in zip(planned, results, strict=True)
    )
    worst = "critical" if "critical" in failed else next(iter(failed), None)
    return SuiteRun(name=name, success=not failed, worst=worst, outcomes=outcomes), results


def _found(result: Any) -> int:
    return int(result.result.get("observed_value", result.result.get("unexpected_count")))


def _result(expectation: Planned, frame: pd.DataFrame, result_format: Mapping[str, Any]) -> Any:
    if expectation.type in _OF_TABLES:
        observed = _OF_TABLES[expectation.type](frame, expectation.kwargs)
        least, most = (
            expectation.kwargs.get("value", expectation.kwargs.get(name)) for name in ("min_value", "max_value")
        )
        return SimpleNamespace(success=least <= observed <= most, result={"observed_value": observed})
    is_unexpected = _OF_VALUES[expectation.type](frame[expectation.kwargs["column"]], expectation.kwargs)
    names = result_format.get("unexpected_index_column_names", ())
    return SimpleNamespace(
        success=not is_unexpected.any(),
        result={
            "element_count": len(frame),
            "unexpected_count": int(is_unexpected.sum()),
            "unexpected_index_list": frame.loc[is_unexpected, list(names)].to_dict("records"),
        },
        expectation_config=SimpleNamespace(severity=SimpleNamespace(value=expectation.severity)),
    )


_OF_TABLES: Mapping[str, Callable[[pd.DataFrame, Mapping[str, Any]], int]] = {
    "expect_table_row_count_to_equal": lambda frame, _: len(frame),
    "expect_column_unique_value_count_to_be_between": lambda frame, asked: int(frame[asked["column"]].nunique()),
}
_OF_VALUES: Mapping[str, Callable[[pd.Series, Mapping[str, Any]], pd.Series]] = {
    "expect_column_values_to_not_be_null": lambda column, _: column.isna(),
    "expect_column_values_to_be_in_set": lambda column, asked: column.notna() & ~column.isin(asked["value_set"]),
    "expect_column_values_to_be_between": lambda column, asked: column < asked["min_value"],
}
