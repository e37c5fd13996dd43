"""Check that the import contracts notice an import against their order, planted in a copy of the product."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
PACKAGES = ("plugins/makewhole", "spark/makewhole_spark")
PLANTED = (
    ("makewhole.model.plan", "makewhole.journal"),  # from the bottom up
    ("makewhole.window.opening.observe", "makewhole.compensation.planning"),  # from one layer into the next above
    ("makewhole.journey.trace", "makewhole.audit.build"),  # from a room into the one beside it
    ("makewhole.compensation.planning.draft", "makewhole.compensation.execution.run_plan"),
    ("makewhole.postgres.read.export", "makewhole.postgres.write.receipts"),
    ("makewhole.kafka.topics", "makewhole.orchestration.task_ids"),
)


def copy_of_the_product(folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    sources = [str((folder / package).parent) for package in PACKAGES]
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_import_against_the_order_is_named(tmp_path: Path) -> None:
    copy = copy_of_the_product(tmp_path)
    for importer, imported in PLANTED:
        path = copy / "plugins" / Path(*importer.split(".")).with_suffix(".py")
        path.write_text(f"{path.read_text(encoding='utf-8')}\nimport {imported}  # planted\n", encoding="utf-8")
    result = lint(copy)
    words = " ".join(result.stdout.split())
    assert result.returncode == 1
    assert [pair for pair in PLANTED if f"{pair[0]} -> {pair[1]} (l." not in words] == []


def test_the_product_as_it_is_keeps_every_contract(tmp_path: Path) -> None:
    result = lint(copy_of_the_product(tmp_path))
    assert result.returncode == 0, result.stdout
