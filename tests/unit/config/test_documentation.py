"""Test that the reference of the pipeline file says what the code does."""

import re
from pathlib import Path

import pytest

from makewhole.config.hops.remedies import VERDICTS, HopKinds
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.gate import Gate
from makewhole.model.hops import Remedies, Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.points import PointKind

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline-file.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def load(text: str, folder: Path) -> Pipeline:
    path = folder / "example.yaml"
    path.write_text(text, encoding="utf-8")
    return load_pipeline(path)


def test_every_example_is_a_good_file(tmp_path: Path) -> None:
    assert [load(block, tmp_path).name for block in BLOCKS] == [
        "flights",
        "departures",
        "orders_by_other_names",
        "orders_that_count",
        "order_lines",
        "latest_lines",
        "order_totals",
        "orders",
        "customers",
        "orders_by_position",
        "payments_once",
        "orders_in_the_lake",
        "orders_once",
        "orders_in_files",
        "european_flights",
        "flights_in_two_tables",
        "wages",
        "enriched_flights",
        "flights_by_a_sink",
        "flights_of_two_stores",
        "flights_with_retries",
        "coupons",
        "watched_orders",
    ]


def test_the_full_example_writes_out_the_defaults(tmp_path: Path) -> None:
    full = load(BLOCKS[1], tmp_path)
    assert (full.gate, full.limits) == (Gate(), Limits())
    assert full.approval == Approval(by=("oncall",))
    assert full.settle == Pipeline(name="x", points={}, hops=()).settle
    default = Pipeline(name="x", points={}, hops=())
    assert (full.retry_for, full.time_limits) == (default.retry_for, default.time_limits)
    assert full.hops[1].remedies == Remedies(
        missing=Remedy.UPSERT, duplicate=Remedy.QUARANTINE, mismatched=Remedy.REPORT, unexpected=Remedy.REPORT
    )


def test_the_table_of_remedies_is_the_one_in_the_code() -> None:
    rows = re.findall(r"^\| (\w+)→(\w+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for source, target, cells in rows:
        kinds = HopKinds(name="", source=PointKind(source), target=PointKind(target))
        written = [re.findall(r"`(\w+)`", cell) for cell in cells.split("|")]
        assert written == [[remedy.value for remedy in kinds.possible(verdict)] for verdict in VERDICTS]
