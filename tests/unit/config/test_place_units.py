"""Check how a pipeline file says in which units the records of a topic count moments and days."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.compute.indexed_keys.hop_filters import KnownFilters
from makewhole.config.pipeline_file import load_pipeline
from makewhole.key_index.window_run import noted_filters
from makewhole.model.errors import ConfigurationError
from makewhole.model.places.compared_columns import compared_at, compared_everywhere
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256
from makewhole.window.context import value_shape

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: shop
compare: {at: timestamp, amount: "decimal(10,2)"}
points:
  log: {kind: topic, connection: k, topic: log, key: "$.id", version: VERSION, columns: {at: AT}}
  store: {kind: store, connection: db, table: dw.orders, key: id, version: v}
hops: [{from: log, to: store}]
"""
AT, VERSION = '{field: "$.at", as: timestamp(ms)}', '{field: "$.v", as: timestamp(s)}'


def _text(at: str = AT, version: str = VERSION) -> str:
    return FILE.replace("AT", at).replace("VERSION", version)


def test_a_place_has_a_unit(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(_text()))
    log = pipeline.topic("log")

    assert (log.version, log.columns) == ("$.v", ())
    assert log.units == (("$.at", "timestamp(ms)"), ("$.v", "timestamp(s)"))
    assert log.version_place == "$.v as timestamp(s)"
    assert compared_at(pipeline, "log")["at"] == "timestamp at log: $.at as timestamp(ms)"
    assert repr(value_shape(pipeline, log).format) == "json with units"


def test_a_file_without_units_is_written_down_as_ever(write: Callable[..., Path]) -> None:
    plain = load_pipeline(write(_text('"$.at"', '"$.v"')))
    assert "units" not in str(configuration_document(plain))
    assert compared_everywhere(plain) == plain.compare
    assert repr(value_shape(plain, plain.topic("log")).format) == "json"


def test_another_unit_is_another_reading(write: Callable[..., Path]) -> None:
    first, other = (load_pipeline(write(_text(AT.replace("ms", unit)), f"{unit}.yaml")) for unit in ("ms", "s"))
    assert judging_sha256(first) != judging_sha256(other)
    assert reading_sha256(first) != reading_sha256(other)
    assert compared_everywhere(first) != compared_everywhere(other)


@pytest.mark.parametrize(
    ("at", "version", "problem"),
    [
        (
            '{field: "$.at", as: timestamp(min)}',
            VERSION,
            "points.log.columns.at.as (line 5): 'timestamp(min)' is not a unit. Allowed: date(days), timestamp(ms), "
            "timestamp(ns), timestamp(s), timestamp(us). Did you mean 'timestamp(ns)'?",
        ),
        (
            '{field: "header:at", as: timestamp(ms)}',
            VERSION,
            "points.log.columns.at.as (line 5): is the unit of header:at, and only fields of a value have one. "
            "Name a field: '$.field', or 'event:field' of a change event",
        ),
        (
            '{field: "$.at"}',
            VERSION,
            "points.log.columns.at.as (line 5): is missing. Say what is counted there: timestamp(s), timestamp(ms), "
            "timestamp(us), timestamp(ns), date(days)",
        ),
        (
            AT,
            '{field: "$.at", as: timestamp(s)}',
            "points.log.version.as (line 5): $.at counts in timestamp(s) here, and in timestamp(ms) in line 5. "
            "Write the same unit wherever the place is named",
        ),
        (
            AT,
            '{field: "event:ts_ms", as: timestamp(ms)}',
            "points.log.version.field (line 5): event:ts_ms is a field of a change event, and the values are json. "
            "Write 'value: debezium' at the point, or '$.' for a field of the value",
        ),
    ],
)
def test_what_is_wrong_about_a_unit_is_named(write: Callable[..., Path], at: str, version: str, problem: str) -> None:
    assert _problems(write(_text(at, version))) == [problem]


def test_a_column_with_a_unit_is_a_moment_everywhere(write: Callable[..., Path]) -> None:
    text = _text().replace("at: timestamp,", "at: bigint,")
    assert _problems(write(text)) == [
        "points.log.columns.at.as (line 5): counts at in timestamp(ms), and it is a bigint elsewhere in the file. "
        "Write 'at: timestamp' there, or take the unit out to compare the numbers"
    ]


def test_a_column_of_a_table_has_no_unit(write: Callable[..., Path]) -> None:
    text = _text().replace("key: id, version: v", "key: id, columns: {at: {field: at, as: timestamp(ms)}}")
    assert _problems(write(text)) == [
        "points.store.columns.at (line 6): is a mapping, and a column of a table has its own type. Name the column"
    ]


def _problems(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_a_filter_by_another_unit_is_another_filter(write: Callable[..., Path]) -> None:
    """Also where the column has the name of its field, so that its place is not written down otherwise."""
    hop = "{from: log, to: store, where: at > '2025-03-01'}"
    plain = _text('"$.at"').replace("{from: log, to: store}", hop)
    texts = {
        "plain": plain,
        **{unit: _text(AT.replace("ms", unit)).replace("{from: log, to: store}", hop) for unit in ["s", "ms"]},
    }
    pipelines = [load_pipeline(write(text, f"{name}.yaml")) for name, text in texts.items()]

    assert len({KnownFilters.of(pipeline).digest("log→store") for pipeline in pipelines}) == 3
    assert len({noted_filters(pipeline, "log")["log→store"] for pipeline in pipelines}) == 3
    assert KnownFilters.of(pipelines[0]).document == {"filters": {"log→store": "at > '2025-03-01'"}}
    assert KnownFilters.of(pipelines[2]).shown("log→store") == "at > '2025-03-01' (at at $.at as timestamp(ms))"
