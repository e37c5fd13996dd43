"""Test the example of coupons: its file is good, and its page shows what is really sent."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.config.template import exact_json
from makewhole.config.template.reversal import Template, scope_of
from makewhole.model.hops import Remedy
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[3] / "examples" / "coupons"


def test_the_reversal_on_the_page_is_the_one_that_the_file_gives() -> None:
    pipeline = load_pipeline(FOLDER / "coupons.yaml")
    row, sent = re.findall(
        r"^```json\n(.*?)\n^```", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    hop = pipeline.hops[1]
    assert hop.reverse is not None
    finding = Finding(
        hop=hop.name, key="C-2013-77", key_hash="", verdict=Verdict.DUPLICATE, cause=Cause.WRITTEN_BEFORE_COMMITTED
    )
    now = datetime(2013, 1, 8, tzinfo=UTC)
    window = Window(pipeline="coupons", number=1, revision=1, start=None, end=now, opened_at=now, ranges={})
    place = "grants/loyalty.grants/(0,2)"
    data = {"key": finding.key, "row": exact_json.loads(row), "finding": {"copies": 2, "copy": 2, "place": place}}

    rendered = Template(hop.reverse).render(scope_of(pipeline, window, finding, data))

    assert rendered.value.decode() == sent
    assert (rendered.key, rendered.headers) == (b"C-2013-77", (("reverses", place.encode()),))


def test_what_the_page_says_of_the_file_is_so() -> None:
    pipeline = load_pipeline(FOLDER / "coupons.yaml")

    assert [point.name for point in pipeline.ordered_points()] == ["shop", "coupons", "grants"]
    assert (pipeline.hops[1].redeliver_to, pipeline.hops[1].remedies.duplicate) == ("coupons_retry", Remedy.REVERSE)
    assert (pipeline.approval.above_actions, pipeline.approval.by) == (0, ("loyalty",))
