"""Read a YAML file as a tree whose every node knows its line, so that every problem can name its place.

pydantic is not used here on purpose: it forgets the lines, and it stops before cross-checks when a type is wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from makewhole.config import values
from makewhole.config.values import UnfitError, allowed, shown
from makewhole.model.errors import Problem

_TAG = "tag:yaml.org,2002:"
_SCALARS = {"str": "text", "int": "a number", "float": "a number", "bool": "a boolean", "null": "empty"}
_TEXT = ("str",)
_TEXT_OR_TIME = ("str", "timestamp")
_WHOLE = ("int",)
_NUMBER = ("int", "float")
_DEEPEST, _MOST_NODES, _ENDLESS = 20, 100_000, 10**9
T = TypeVar("T")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Problems:
    """The problems of one file, as they are found; `listed` gives them in the order of the file."""

    file: str
    _found: list[tuple[int, Problem]] = field(default_factory=list)

    def add(self, line: int, path: str, found: str, remedy: str) -> None:
        """Note one problem at a 1-based line."""
        place = f"{path} (line {line})" if path else f"line {line}"
        self._found.append((line, Problem(file=self.file, path=place, found=found, remedy=remedy)))

    def listed(self) -> tuple[Problem, ...]:
        return tuple(problem for _, problem in sorted(self._found, key=lambda entry: entry[0]))


@dataclass(frozen=True, kw_only=True)
class YamlPlace:
    """One node of the file, with its path and line."""

    problems: Problems
    node: Node
    path: str
    line: int

    def complain(self, found: str, remedy: str) -> None:
        self.problems.add(self.line, self.path, found, remedy)

    def text(self, parse: Callable[[str], T]) -> T | None:
        """Return a text, read by `parse`; None when it is wrong, which is then noted."""
        return self._scalar(_TEXT, "text", parse)

    def moment(self, parse: Callable[[str], T]) -> T | None:
        """Return a text that YAML may have taken for a time."""
        return self._scalar(_TEXT_OR_TIME, "text or a time", parse)

    def whole(self, parse: Callable[[str], int]) -> int | None:
        return self._scalar(_WHOLE, "a whole number", parse)

    def number(self, parse: Callable[[str], float]) -> float | None:
        return self._scalar(_NUMBER, "a number", parse)

    def boolean(self) -> bool | None:
        return self._scalar(("bool",), "true or false", values.boolean)

    def words(self, parse: Callable[[str], T]) -> tuple[T, ...] | None:
        """Return a text or a list of texts, none twice; None when any is wrong."""
        places = tuple(self._elements()) if isinstance(self.node, SequenceNode) else (self,)
        if not places:
            self.complain("is an empty list", "Name at least one")
            return None
        values = [place.text(parse) for place in places]
        for place, value in zip(places, values, strict=True):
            if value is not None and values.index(value) < places.index(place):
                place.complain(f"{shown(str(value))} is named twice", "Name it once")
                return None
        return None if any(value is None for value in values) else tuple(v for v in values if v is not None)

    def elements(self) -> tuple["YamlPlace", ...]:
        """Return the elements of a list; none when it is no list, which is then noted."""
        if isinstance(self.node, SequenceNode):
            return tuple(self._elements())
        self.complain(f"is {describe(self.node)}, not a list", "Write a list, each element behind '- '")
        return ()

    def section(self) -> "Section | None":
        """Return the keys below this place; None when there are none, which is then noted."""
        if isinstance(self.node, MappingNode):
            return Section(self)
        self.complain(f"is {describe(self.node)}, not a mapping", "Write 'key: value' lines below it, or {key: value}")
        return None

    def child(self, key: str, node: Node, line: int) -> "YamlPlace":
        path = f"{self.path}.{key}" if self.path else key
        return YamlPlace(problems=self.problems, node=node, path=path, line=line)

    def _elements(self) -> Iterator["YamlPlace"]:
        for index, node in enumerate(self.node.value):
            path = f"{self.path}[{index}]"
            yield YamlPlace(problems=self.problems, node=node, path=path, line=line_of(node))

    def _scalar(self, tags: tuple[str, ...], wanted: str, parse: Callable[[str], T]) -> T | None:
        if not isinstance(self.node, ScalarNode) or is_empty(self.node):
            self.complain(f"is {describe(self.node)}, not {wanted}", f"Write {wanted}")
            return None
        try:
            value = parse(self.node.value)
        except UnfitError as unfit:
            self.complain(unfit.found, unfit.remedy)
            return None
        if self.node.tag.removeprefix(_TAG) in tags:
            return value
        hint = "Put it in quotes" if "str" in tags else "Take the quotes off"
        self.complain(f"is {describe(self.node)}, not {wanted}", hint)
        return None


class Section:
    """The keys of a mapping, each a `YamlPlace`."""

    def __init__(self, place: YamlPlace) -> None:
        self.place = place
        self._places: dict[str, YamlPlace] = {}
        for key, node in place.node.value:
            word = key_text(key)
            if word not in self._places:
                self._places[word] = place.child(word, node, line_of(key))

    def __iter__(self) -> Iterator[tuple[str, YamlPlace]]:
        return iter(self._places.items())

    def only(self, *known: str) -> None:
        """Note every key that is not one of `known`."""
        for word, place in self:
            if word not in known:
                place.complain("is not a key here", allowed(word, known))

    def get(self, key: str) -> YamlPlace | None:
        """Return the place of an optional key; one without a value is noted and counts as absent."""
        place = self._places.get(key)
        if place is not None and is_empty(place.node):
            place.complain("has no value", "Give it one, or take the line out to have the default")
            return None
        return place

    def need(self, key: str, remedy: str) -> YamlPlace | None:
        """Return the place of a key that must be there; its absence is noted with the remedy."""
        place = self._places.get(key)
        if place is not None and not is_empty(place.node):
            return place
        (place or self.absent(key)).complain("is missing" if place is None else "has no value", remedy)
        return None

    def absent(self, key: str) -> YamlPlace:
        """Return the place at which the absence of a key is reported."""
        return self.place.child(key, self.place.node, self.place.line)

    def get_quietly(self, key: str) -> YamlPlace | None:
        """Return the place of a key, nothing noted."""
        return self._places.get(key)

    def has(self, key: str) -> bool:
        return key in self._places


def describe(node: Node) -> str:
    """Return the kind of a node, in a word for people."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    return _SCALARS.get(node.tag.removeprefix(_TAG), "a special value")


def line_of(node: Node) -> int:
    """Return the 1-based line where a node begins."""
    return node.start_mark.line + 1


def is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == f"{_TAG}null"


def key_text(node: Node) -> str:
    """Return a key as written: `on:` stays `on`, although YAML 1.1 takes it for a boolean."""
    return str(node.value) if isinstance(node, ScalarNode) else f"({describe(node)})"


def read_tree(path: Path, problems: Problems) -> Section | None:
    """Return the top of a YAML file; None when it is none, which is then noted. Doubled keys are noted everywhere."""
    root = _compose(path, problems)
    if root is None:
        return None
    _note_doubled_keys(root, "", problems, set())
    return YamlPlace(problems=problems, node=root, path="", line=line_of(root)).section()


class _Size(NamedTuple):
    """The number of nodes in a tree whose aliases are written out, and how deep it is nested."""

    nodes: int
    depth: int


def _compose(path: Path, problems: Problems) -> Node | None:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        root = None if _is_too_deep(text, problems) else yaml.compose(text, Loader=_Loader)
    except OSError as error:
        problems.add(1, "", f"cannot be read ({error.strerror})", "Name a file that exists and may be read")
    except UnicodeDecodeError:
        problems.add(1, "", "is not UTF-8 text", "Save it as YAML in UTF-8")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fault = f"is not YAML ({error.problem or error.context})"
        problems.add(mark.line + 1 if mark else 1, "", fault, "Mend the syntax at this line or above")
    except yaml.YAMLError:
        problems.add(1, "", "is not YAML (it has forbidden characters)", "Save it as plain text in UTF-8")
    else:
        if root is not None and not is_empty(root):
            return None if _is_too_large(root, problems) else root
        if not problems.listed():
            problems.add(1, "", "is empty", "Describe a pipeline in it; docs/pipeline-file.md has an example")
    return None


def _is_too_deep(text: str, problems: Problems) -> bool:
    """Return whether the nesting is beyond all reason, which is then noted: it would overflow the C composer's stack
    and take the whole process along."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > _DEEPEST:
            line, fault = event.start_mark.line + 1 if event.start_mark else 1, f"is nested more than {_DEEPEST} deep"
            problems.add(line, "", fault, "A pipeline file has five levels at most")
            return True
    return False


def _is_too_large(root: Node, problems: Problems) -> bool:
    """Return whether the tree with its aliases written out is beyond all reason, which is then noted: an anchor that
    holds itself has no end, and some lines of aliases can stand for billions."""
    sizes: dict[int, _Size] = {}
    size = _size(root, sizes)
    if size.nodes <= _MOST_NODES and size.depth <= _DEEPEST:
        return False
    fault = "holds itself" if size.nodes >= _ENDLESS else "is too large or too deep"
    problems.add(1, "", f"{fault} once its aliases (`*name`) are written out", "Write out what the aliases stand for")
    return True


def _size(node: Node, sizes: dict[int, _Size]) -> _Size:
    if isinstance(node, ScalarNode):
        return _Size(1, 0)
    if id(node) not in sizes:
        sizes[id(node)] = _Size(_ENDLESS, _ENDLESS)  # it has this size for what is in it
        inner = node.value if isinstance(node, SequenceNode) else [part for pair in node.value for part in pair]
        parts = [_size(part, sizes) for part in inner]
        nodes, depth = 1 + sum(part.nodes for part in parts), 1 + max((part.depth for part in parts), default=0)
        sizes[id(node)] = _Size(min(nodes, _ENDLESS), min(depth, _ENDLESS))
    return sizes[id(node)]


def _note_doubled_keys(node: Node, path: str, problems: Problems, seen: set[int]) -> None:
    if id(node) in seen:  # an alias: its anchor has been looked at, and it may hold itself
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, element in enumerate(node.value):
            _note_doubled_keys(element, f"{path}[{index}]", problems, seen)
    elif isinstance(node, MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            word, line = key_text(key), line_of(key)
            inside = f"{path}.{word}" if path else word
            if word in first:
                problems.add(line, inside, f"is written twice (first in line {first[word]})", "Keep one of the two")
            first.setdefault(word, line)
            _note_doubled_keys(value, inside, problems, seen)
