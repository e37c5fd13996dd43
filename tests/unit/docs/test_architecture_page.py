"""Hold the architecture page and the internals to the tree: every folder of the product is drawn, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
INTERNALS = ROOT / "docs" / "internals"
PAGES = [ARCHITECTURE, *sorted(INTERNALS.glob("*.md"))]
STEPS = (
    "open",
    "snapshot",
    "reconcile",
    "gate",
    "plan",
    "approve",
    "compensate",
    "verify",
    "certify",
    "publish",
    "undo-and-accept",
)
"""The pages of the steps, in the order of a window."""
HOUSE_PAGE = (INTERNALS / "house.md").read_text(encoding="utf-8")
HOUSE = re.findall(r"^```\n(.*?)^```", HOUSE_PAGE, re.MULTILINE | re.DOTALL)[0]

PRODUCT = ("plugins/makewhole", "spark/makewhole_spark", "spark/jobs", "sql", "dags")
FIRST_LEVEL = ("tests", "examples")
FILES_OF_A_STEP = 6
LINES_OF_THE_PAGE = 220

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
every_step = pytest.mark.parametrize("step", STEPS)


def prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def of_step(step: str, field: str) -> str:
    """Return what the beginning of a step's page says of its code, of what it reads, or of what it commits."""
    text = prose(INTERNALS / f"{step}.md")
    match = re.search(rf"^- \*\*{field}:\*\* (.*?)(?=^- |^$)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"{step}.md does not say its {field}"
    return match[1]


def located(path: str) -> Path:
    """Return where a path of a page is in the checkout: the package's own folders are named without `plugins/`."""
    top = path.split("/")[0]
    if top in ("makewhole_spark", "jobs"):
        return ROOT / "spark" / path
    return ROOT / path if (ROOT / top).exists() else ROOT / "plugins" / "makewhole" / path


def code_paths(text: str) -> Iterator[str]:
    """Yield what is set as code and looks like a path; a bare file name is of the folder that was named before it."""
    folder = ""
    for name in re.findall(r"`([a-z_0-9/]+(?:\.(?:py|sql|yaml|toml))?/?)`", text):
        if "/" in name:
            folder = name.rpartition("/")[0]
            yield name
        elif "." in name and not (ROOT / name).exists():
            yield f"{folder}/{name}"


def drawn_folders() -> set[str]:
    """Return every folder of the drawing of the house, as a path from the root of the checkout."""
    paths, above = set(), dict[int, str]()
    for indent, name in re.findall(r"^( *)([\w/]+)/(?= |$)", HOUSE, re.MULTILINE):
        parent = max((depth for depth in above if depth < len(indent)), default=None)
        path = name if parent is None else f"{above[parent]}/{name}"
        above = {depth: folder for depth, folder in above.items() if depth < len(indent)} | {len(indent): path}
        paths.add(path)
    return paths


def folders_with_files(top: Path) -> Iterator[str]:
    for folder in (top, *(path for path in top.rglob("*") if path.is_dir())):
        if "__pycache__" not in folder.parts and any(path.is_file() for path in folder.iterdir()):
            yield folder.relative_to(ROOT).as_posix()


def in_journal(kinds: str) -> set[str]:
    """Return the names of what the migrations create: tables, views, or both."""
    migrations = sorted((ROOT / "sql" / "migrations").glob("*.sql"))
    schema = "".join(path.read_text(encoding="utf-8") for path in migrations)
    return set(re.findall(rf"create (?:{kinds}) makewhole\.(\w+)", schema))


def test_every_folder_of_the_product_is_in_the_drawing_of_the_house() -> None:
    assert {folder for top in PRODUCT for folder in folders_with_files(ROOT / top)} - drawn_folders() == set()


def test_every_kind_of_test_and_every_example_is_in_the_drawing_of_the_house() -> None:
    kinds = {
        folder.relative_to(ROOT).as_posix()
        for top in FIRST_LEVEL
        for folder in (ROOT / top).iterdir()
        if folder.is_dir() and any(folders_with_files(folder))
    }
    assert kinds - drawn_folders() == set()


def test_the_drawing_of_the_house_has_no_folder_that_is_not_there() -> None:
    assert [folder for folder in sorted(drawn_folders()) if not (ROOT / folder).is_dir()] == []


@every_page
def test_every_path_on_a_page_exists(page: Path) -> None:
    assert [path for path in code_paths(prose(page)) if not located(path).exists()] == []


@every_step
def test_a_step_is_one_folder_or_a_handful_of_files(step: str) -> None:
    code = of_step(step, "Code")
    assert [path for path in code_paths(code) if located(path).is_dir() or path.endswith(".py")] != []
    assert len(re.findall(r"\.py`", code)) <= FILES_OF_A_STEP


@every_step
def test_a_step_says_what_it_reads_and_commits_to_tables_that_exist(step: str) -> None:
    assert of_step(step, "Reads").strip() != ""
    named = set(re.findall(r"`([a-z_]+)`", of_step(step, "Commits")))
    assert named != set()
    assert named - {"verified"} <= in_journal("table|view")


def test_the_page_of_the_journal_has_every_table_and_every_view() -> None:
    text = prose(INTERNALS / "journal.md")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)) == in_journal("table")
    assert {view for view in in_journal("view") if f"`{view}`" not in text} == set()


def test_the_architecture_page_can_be_read_to_its_end() -> None:
    assert len(ARCHITECTURE.read_text(encoding="utf-8").splitlines()) <= LINES_OF_THE_PAGE


def test_the_architecture_page_names_folders_and_no_file() -> None:
    text = prose(ARCHITECTURE)
    assert re.findall(r"`[^`]*\.(?:py|sql|yaml|toml)`", text) == []
    assert [path for path in code_paths(text) if not (ROOT / path).is_dir()] == []


def test_the_architecture_page_goes_through_the_steps_in_their_order_and_names_their_folders() -> None:
    of_pages = {
        link[1]: section
        for section in re.split(r"^###? ", prose(ARCHITECTURE), flags=re.MULTILINE)
        if (link := re.search(r"Details:\s+\[[^\]]+\]\(internals/([\w-]+)\.md\)", section)) is not None
    }
    assert [page for page in of_pages if page != "key-index"] == list(STEPS)
    assert [page for page, section in of_pages.items() if not [*code_paths(section)]] == []


def test_every_page_of_the_internals_is_listed_once_and_linked_from_the_architecture_page() -> None:
    pages = {page.name for page in INTERNALS.glob("*.md")} - {"README.md"}
    listed = re.findall(r"^- \[[\w-]+\.md\]\(([\w-]+\.md)\): ", prose(INTERNALS / "README.md"), re.MULTILINE)
    assert sorted(listed) == sorted(pages)
    assert {*re.findall(r"\(internals/([\w-]+\.md)\)", prose(ARCHITECTURE))} - {"README.md"} == pages
