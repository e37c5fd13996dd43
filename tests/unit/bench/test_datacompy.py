"""Test what the environment of datacompy is made from, and that its process asks for nothing else."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from bench.datacompy_environment import LOCK, locked_version

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]


def imported(module: str) -> Iterator[str]:
    """Yield the packages that a module of the benchmarks imports, through other modules of theirs too."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name.startswith("bench."):
                yield from imported(name)
            else:
                yield name.split(".")[0]


def test_the_process_imports_only_what_its_environment_has() -> None:
    assert set(imported("bench.windows.by_datacompy")) - sys.stdlib_module_names == {"datacompy", "pyspark"}


def test_the_lock_is_of_the_projects_spark_and_of_the_pandas_that_datacompy_knows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = (ROOT / "bench" / "datacompy.in").read_text(encoding="utf-8").split()

    assert f"pyspark=={locked_version('pyspark')}" in project["optional-dependencies"]["spark"]
    assert locked_version("pandas") in SpecifierSet("<3.1")
    assert wanted == [f"{name}=={locked_version(name)}" for name in ("datacompy", "pyspark")]


def test_every_package_of_the_lock_has_its_hashes_and_none_an_address() -> None:
    text = LOCK.read_text(encoding="utf-8")
    packages = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]

    assert [package for package in packages if not re.match(r"[a-z0-9-]+==\S+ \\\n +--hash=sha256:", package)] == []
    assert len(packages) > 10
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text
