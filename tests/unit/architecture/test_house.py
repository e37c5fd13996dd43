"""Hold the tree to the rules that a folder, an import, a name and a docstring of the product follow."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
SOURCES = (ROOT / "plugins", ROOT / "spark")
MODULES_OF_A_FOLDER = 20
CHAIN_OF_COMPENSATION = 5
PLAIN = {
    "told": "reported, known from, a message",
    "telling": "which decides, which distinguishes",
    "anew": "again",
    "unsaid": "implicit",
    "meant": "expected, intended",
    "spelled": "encoded, written",
    "nobody": "the part by name, or the passive voice",
    "somebody": "the part by name, or the passive voice",
    "stranger": "an unmatched row",
    "strangers": "unmatched rows",
    "lacking": "missing",
}
"""Words that read as mannered, each with what to say instead."""
EMPTY_NAMES = frozenset({"one", "found"})
"""Names of variables in whose place a noun says what they hold."""
_MANNERED = re.compile(rf"(?<![a-z])(?:{'|'.join(PLAIN)})(?![a-z])", re.IGNORECASE)


def _modules() -> dict[str, Path]:
    """Return every module of the product by its dotted name; a package stands for its `__init__.py`."""
    paths = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
            paths[name] = path
    return paths


MODULES = _modules()
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imports_of(module: str) -> set[str]:
    """Return the modules of the product that a module imports, at its top or in a function."""
    imported = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                imported.add(inner if inner in MODULES else node.module)
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return imported & set(MODULES) - {module}


def longest_chain(package: str) -> list[str]:
    """Return the longest way along imports inside a package, the importing module first.

    Raises:
        graphlib.CycleError: modules import each other in a circle.
    """
    inside = {name for name in MODULES if name == package or name.startswith(f"{package}.")}
    graph = {name: imports_of(name) & inside for name in inside}
    chains: dict[str, list[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        chains[name] = [name, *max((chains[below] for below in sorted(graph[name])), key=len, default=[])]
    return max(chains.values(), key=len)


def names_defined(module: str) -> Iterator[str]:
    """Yield the classes and type aliases of a module, without the underscore of private ones."""
    for node in TREES[module].body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            name = target.id.lstrip("_") if isinstance(target, ast.Name) else ""
            if name[:1].isupper() and not name.isupper():
                yield name


def test_no_folder_holds_more_modules_than_a_reader_can_oversee() -> None:
    folders = defaultdict(list)
    for path in [*MODULES.values(), *(ROOT / "bench").rglob("*.py")]:
        if path.name != "__init__.py":
            folders[path.parent.relative_to(ROOT).as_posix()].append(path.stem)
    assert {folder: len(modules) for folder, modules in folders.items() if len(modules) > MODULES_OF_A_FOLDER} == {}


def test_no_chain_of_imports_inside_compensation_is_longer_than_five_modules() -> None:
    chain = longest_chain("makewhole.compensation")
    assert len(chain) <= CHAIN_OF_COMPENSATION, " → ".join(chain)


def test_no_class_or_alias_name_has_two_meanings() -> None:
    places = defaultdict(set)
    for module in MODULES:
        for name in names_defined(module):
            places[name].add(module)
    twice = [f"{name}: {', '.join(sorted(modules))}" for name, modules in places.items() if len(modules) > 1]
    assert not twice, "\n".join(twice)


def test_every_module_has_a_docstring() -> None:
    wrong = [module for module, tree in TREES.items() if not ast.get_docstring(tree)]
    assert not wrong, "\n".join(wrong)


def test_no_text_or_name_has_a_word_with_a_plainer_one() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}: say {PLAIN[match[0].lower()]}"
        for path in _texts()
        for number, line in enumerate((path.name, *path.read_text(encoding="utf-8").splitlines()))
        for match in _MANNERED.finditer(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_variables_are_called_what_they_hold() -> None:
    wrong = [
        f"{module}:{line}: {name}"
        for module, tree in {**TREES, **_trees_beside()}.items()
        for line, name in _variables(tree)
        if name in EMPTY_NAMES and not (name == "found" and line in _lines_with_problems(tree))
    ]
    assert not wrong, "\n".join(wrong)


def _trees_beside() -> dict[str, ast.Module]:
    """Return the modules of the benchmarks, of the examples and of the tests by their paths."""
    paths = [path for folder in ("bench", "examples", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    return {f"{path.relative_to(ROOT)}": ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _variables(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable and parameter, without the fields of classes."""
    fields = {
        id(line.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _lines_with_problems(tree: ast.Module) -> set[int]:
    """Return the lines of the functions that describe a problem, whose text is what was `found`."""
    lines = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_of_problem, ast.walk(node))):
            lines |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return lines


def _is_of_problem(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg=name) | ast.arg(arg=name):
            return name in ("found", "remedy") and not (isinstance(node, ast.arg) and name == "found")
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.lstrip("_") in ("problem", "fail", "complain", "unfit", "wrong", "Problem", "UnfitError")
    return False


def _texts() -> Iterator[Path]:
    """Yield the files that people read: code, statements, pages, examples and what builds them."""
    for folder in ("plugins", "spark", "dags", "sql", "bench", "docs", "examples", "tests"):
        for kind in ("*.py", "*.sql", "*.md"):
            yield from (path for path in (ROOT / folder).rglob(kind) if path != Path(__file__))
    yield from (*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / ".ci").iterdir())
