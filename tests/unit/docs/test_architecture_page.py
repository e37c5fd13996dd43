"""Hold the architecture page to the tree: every folder of the product is on it, and nothing that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
STEPS = [line.split("|") for line in TEXT.split("## Step by step")[1].split("###")[0].splitlines() if "| **" in line]
HOUSE = re.findall(r"^```\n(.*?)^```", TEXT.split("## The house")[1], re.MULTILINE | re.DOTALL)[0]

PRODUCT = ("plugins/makewhole", "spark/makewhole_spark", "spark/jobs", "sql", "dags")
FIRST_LEVEL = ("tests", "examples")
FILES_OF_A_STEP = 6


def located(path: str) -> Path:
    """Return where a path of the page is in the checkout: the package's own folders are named without `plugins/`."""
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
    found, above = set(), dict[int, str]()
    for indent, name in re.findall(r"^( *)([\w/]+)/(?= |$)", HOUSE, re.MULTILINE):
        parent = max((depth for depth in above if depth < len(indent)), default=None)
        path = name if parent is None else f"{above[parent]}/{name}"
        above = {depth: folder for depth, folder in above.items() if depth < len(indent)} | {len(indent): path}
        found.add(path)
    return found


def folders_with_files(top: Path) -> Iterator[str]:
    for folder in (top, *(path for path in top.rglob("*") if path.is_dir())):
        if "__pycache__" not in folder.parts and any(path.is_file() for path in folder.iterdir()):
            yield folder.relative_to(ROOT).as_posix()


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


def test_every_path_on_the_page_exists() -> None:
    in_steps = [path for cells in STEPS for path in code_paths(cells[2])]
    assert [path for path in [*in_steps, *code_paths(PROSE)] if not located(path).exists()] == []


def test_a_step_is_one_folder_or_a_handful_of_files() -> None:
    assert len(STEPS) == 10
    assert [cells[1].strip() for cells in STEPS if len(re.findall(r"\.py`", cells[2])) > FILES_OF_A_STEP] == []


def test_every_journal_table_of_a_step_exists() -> None:
    migrations = sorted((ROOT / "sql" / "migrations").glob("*.sql"))
    schema = "".join(path.read_text(encoding="utf-8") for path in migrations)
    tables = set(re.findall(r"create (?:table|view) makewhole\.(\w+)", schema))
    named = {word for cells in STEPS for word in re.findall(r"`([a-z_]+)`", cells[4])}
    assert named - {"verified"} <= tables
