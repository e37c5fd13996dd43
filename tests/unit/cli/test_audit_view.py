"""Test the audit for people: plots, tables, and a page that is never wider than it should be."""

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from makewhole.audit.findings import findings
from makewhole.audit.guarantees import guarantees
from makewhole.audit.report import AuditReport, BreakReport
from makewhole.cli.audit.plot import bars, rate_plot
from makewhole.cli.audit.view import show
from makewhole.model.window import Accounting
from tests.unit.audit import samples

pytestmark = pytest.mark.unit


def printed(report: AuditReport, width: int = 100) -> list[str]:
    out = StringIO()
    whole = replace(report, findings=findings(report), guarantees=guarantees(report))
    show(Console(file=out, width=width, highlight=False, markup=False, soft_wrap=True), whole, top=10)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_page_of_ordinary_numbers_is_a_hundred_columns_wide_at_most() -> None:
    lines = printed(samples.report(partitions=(samples.partition(),) * 40), 200)
    assert max(len(line) for line in lines) <= 100
    assert "and 24 more" in lines


@pytest.mark.parametrize("width", [72, 100, 200])
def test_no_number_is_cut_however_narrow_the_terminal(width: int) -> None:
    place = BreakReport(
        kind="missing_head",
        partition=1234,
        producer_id=10**12,
        producer_epoch=32767,
        offset=10**11,
        expected=2**31 - 1,
        found=2**31 - 2,
        records=2**31,
    )
    broken = samples.sequences(missing_heads=1, breaks=(place,))
    (line,) = [line for line in printed(samples.report(sequences=broken), width) if line.startswith("missing head")]
    numbers = "1234 100000000000 1000000000000 32767 2147483647 2147483646 2,147,483,648"
    assert line.split() == ["missing", "head", *numbers.split()]


def test_columns_that_say_nothing_are_left_out_and_the_others_are_explained() -> None:
    partition = samples.partition(offsets=Accounting(span=100, data=90, control=10))
    lines = printed(samples.report(partitions=(partition,)))
    (heading,) = [line for line in lines if line.startswith("partition")]
    assert heading.split() == ["partition", "offsets", "data", "control"]
    assert "data: what committed readers get; control: transaction markers: each takes an offset" in lines


def test_what_a_broker_says_cannot_drive_the_terminal() -> None:
    evil = samples.report(settings_refusal="no\x1b[31m rights\r", topic="[bold]x[/bold]")
    text = "\n".join(printed(evil))
    assert "\x1b" not in text
    assert "[bold]x[/bold]" in text


def test_bars_show_anything_above_nothing() -> None:
    assert bars([0, 1, 500, 1000]) == " ▁▄█"
    assert bars([]) == ""


def test_the_plot_has_a_column_per_step_and_says_how_long_one_is() -> None:
    lines = rate_plot([(0, 10), (1000, 20), (3000, 5)], 1000, 100)
    assert [line.rstrip() for line in lines[:4]] == ["20  █", "    █", "   ██", " 0 ██ █"]
    assert "a column is 1 s" in lines[-1]


def test_a_few_records_from_1970_do_not_flatten_the_plot() -> None:
    day = [(samples.NOW_MS + 1000 * second, 1000) for second in range(100)]
    lines = rate_plot([(0, 3), *day], 1000, 100)
    assert lines[-1].strip() == "3 records with timestamps far outside are not drawn"
    assert "a column is 2 s" in lines[-2]


@given(st.dictionaries(st.integers(0, 10**6), st.integers(1, 10**9), max_size=30), st.integers(60, 100))
def test_any_plot_fits_its_columns(buckets: dict[int, int], columns: int) -> None:
    lines = rate_plot(sorted((1000 * start, records) for start, records in buckets.items()), 1000, columns)
    assert all(len(line.rstrip()) <= columns for line in lines[:4])
