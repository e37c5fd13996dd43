"""Hold the record of datasets to what their extras install: each library with its licence."""

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.unit

_ROOT = Path(__file__).parents[3]
_RECORD = (_ROOT / "docs/adr/0031-datasets-and-commits-of-iceberg.md").read_text(encoding="utf-8")
_SAID_ELSEWHERE = "hdfs-native"
"""Its wheel says no licence."""


def installed_with(wanted: Iterable[str]) -> set[str]:
    """Return the names of the packages that requirements bring, themselves among them."""
    reached, open_ones = dict[tuple[str, frozenset[str]], None](), [Requirement(text) for text in wanted]
    while open_ones:
        requirement = open_ones.pop()
        place = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if place in reached or not _holds(requirement, ("",)):
            continue
        reached[place] = None
        more = [Requirement(text) for text in _required_by(requirement.name)]
        open_ones += [_unmarked(each) for each in more if _holds(each, (*requirement.extras, ""))]
    return {name for name, _ in reached}


def _required_by(package: str) -> Iterable[str]:
    try:
        return requires(package) or ()
    except PackageNotFoundError:  # what pyspark stands for
        return ()


def _holds(requirement: Requirement, extras: Iterable[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def _unmarked(requirement: Requirement) -> Requirement:
    requirement.marker = None
    return requirement


def added_by_datasets() -> list[str]:
    """Return the packages that the extras of datasets bring and that makewhole has not without them."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return sorted(installed_with([*extras["iceberg"], *extras["hdfs"]]) - installed_with(project["dependencies"]))


@pytest.mark.parametrize("package", added_by_datasets())
def test_the_record_has_each_library_that_datasets_bring_with_its_licence(package: str) -> None:
    named = re.compile(rf"\|[^|]*(?<![\w-]){package}(?![\w-])")
    [line] = [line for line in _RECORD.splitlines() if named.match(line)]
    said = metadata(package)
    [licence, *_] = [*said.get_all("License-Expression", []), *said.get_all("License", []), ""]
    licence = licence.partition("\n")[0].removesuffix(" License")
    assert licence in line if package != _SAID_ELSEWHERE else not licence
