"""Check that compiled functions are cached, and that a cached one can be loaded."""

import ast
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from makewhole.kafka.log import record_walk
from makewhole.native import (
    byte_strings,
    digest_lines,
    element_texts,
    equal_pairs,
    fingerprints,
    json_elements,
    json_scan,
    latest_versions,
    moments,
    sort_hashes,
)
from makewhole.native.compiled import Compiled
from makewhole.postgres.read.copy_binary import render, walk
from makewhole.stack.compile_ahead import CALLS

pytestmark = pytest.mark.unit

MODULES = [
    *(byte_strings, digest_lines, element_texts, equal_pairs, fingerprints, json_elements, json_scan),
    *(latest_versions, moments, record_walk, render, sort_hashes, walk),
]
SOURCE = """
from makewhole.native.compiled import compiled

@compiled
def twice(number: int) -> int:
    return 2 * number
"""


def functions(module: ModuleType) -> list[Compiled[Any, Any]]:
    return [function for function in vars(module).values() if isinstance(function, Compiled)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_that_a_compiled_function_uses_is_in_its_own_file(module: ModuleType) -> None:
    """Hold compiled loops to one file, which alone identifies a cached version: a change of another goes unnoticed."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and "makewhole" in str(node.module)]
    imported = {name.asname or name.name for node in imports for name in node.names}

    used = {name for function in functions(module) for name in function.function.__code__.co_names}

    assert used
    assert not used & imported


def test_a_cached_function_names_no_class_of_ours() -> None:
    """It is unpickled before its source is compared: the pickle of a class that was renamed cannot be read."""
    for call in CALLS:
        call()

    dispatchers = [function.dispatcher for module in MODULES for function in functions(module)]
    cached = [function for function in dispatchers if function.stats.cache_path is not None]

    assert sorted(function.__name__ for function in cached) == [
        *("_add_up", "_find", "_group", "_is_ascii", "_most_elements", "_read", "_read_all", "_render"),
        *(
            "_room",
            "_scan",
            "_size",
            "_view",
            "_walk",
            "_walk",
            "_walk_headers",
            "_write",
            "choose_latest",
            "find_fingerprints",
            "leave_out_equal_pairs",
        ),
    ]
    assert all(len(function.signatures) == 1 for function in cached), "a type of array that was not compiled ahead"
    assert not any("NamedTuple" in repr([type(kind) for kind in function.signatures[0]]) for function in cached)


@pytest.mark.parametrize("is_zip", [False, True])
@pytest.mark.parametrize("is_writable", [False, True])
def test_a_function_works_without_a_writable_cache_folder(
    is_zip: bool, is_writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"cached_{is_zip}_{is_writable}"
    source, caches = tmp_path / "source", tmp_path / "caches"
    if is_zip:
        source = tmp_path / "source.zip"
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr(f"{name}.py", SOURCE)
    else:
        source.mkdir()
        (source / f"{name}.py").write_text(SOURCE, encoding="utf-8")
        if not is_writable:
            (source / "__pycache__").touch()
    if not is_writable:
        caches.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    monkeypatch.syspath_prepend(str(source))

    assert import_module(name).twice(21) == 42
    assert any(tmp_path.rglob("*.nbi")) == is_writable
