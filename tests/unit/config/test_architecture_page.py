"""The architecture page names only code that is there."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLE = TEXT.split("## Step by step")[1].split("###")[0]


def located(path: str) -> Path:
    """Where a path of the page is in the checkout."""
    if path.startswith("spark/"):
        return ROOT / path
    return (ROOT / "spark" if path.startswith("makewhole_spark/") else ROOT / "plugins" / "makewhole") / path


def test_every_module_of_a_step_exists() -> None:
    rows = [line.split("|")[2] for line in TABLE.splitlines() if line.startswith("| **")]
    missing = []
    for cell in rows:
        folder = ""
        for name in re.findall(r"`([a-z_/]+(?:\.py)?/?)`", cell):
            folder = name.rpartition("/")[0] if "/" in name else folder
            path = name if "/" in name else f"{folder}/{name}"
            missing += [] if located(path).exists() else [path]
    assert len(rows) == 10
    assert missing == []


def test_every_journal_table_of_a_step_exists() -> None:
    schema = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "sql" / "migrations").glob("*.sql")))
    tables = set(re.findall(r"create table makewhole\.(\w+)", schema))
    named = {
        word
        for line in TABLE.splitlines()
        if line.startswith("| **")
        for word in re.findall(r"`([a-z_]+)`", line.split("|")[4])
    }
    assert named - {"verified"} <= tables


def test_every_link_leads_somewhere() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
