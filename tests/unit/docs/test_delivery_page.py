"""Hold the page on claimed deliveries, and the rows that findings name, to the lab's page and to the code."""

import re
from pathlib import Path

import pytest

from makewhole.model.delivery.claims import Delivery
from makewhole.model.delivery.weaknesses import Fault, Severity

pytestmark = pytest.mark.unit

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "delivery.md").read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_row_that_a_finding_names_is_one_of_the_labs() -> None:
    assert {fault.value for fault in Fault} - anchors((DOCS / "faults.md").read_text(encoding="utf-8")) == set()


def test_the_page_names_each_row_that_a_finding_can_name() -> None:
    named = {
        number for line in PAGE.splitlines() if line.startswith("| ") for number in re.findall(r"\b\d+\b", line[-12:])
    }
    assert {fault.row for fault in Fault} - named == set()


def test_the_page_has_every_claim_and_every_severity() -> None:
    assert {f"| `{delivery}` |" for delivery in Delivery if f"| `{delivery}` |" not in PAGE} == set()
    assert {severity for severity in Severity if f"**{severity}**" not in PAGE} == set()
