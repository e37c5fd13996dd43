"""Hold every page to what it points at: its links lead somewhere, and the modules it names exist."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
FOLDERS_OF_PATHS = (ROOT, ROOT / "plugins" / "makewhole", ROOT / "spark")
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    ROOT / "bench" / "README.md",
]
every_page = pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.relative_to(ROOT).as_posix())


def prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not link.startswith("http") and (not target.exists() or (anchor and anchor not in anchors(target))):
            broken.append(link)
    assert broken == []


@every_page
def test_every_module_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"`([a-z_0-9/]+/[a-z_0-9]+\.py)`", prose(page))
    assert [path for path in named if not any((folder / path).exists() for folder in FOLDERS_OF_PATHS)] == []
