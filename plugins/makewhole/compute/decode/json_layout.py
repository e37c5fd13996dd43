"""Learn the layout of a JSON object: its leaf values, and the fixed text before, between and behind them.

A program writes its records with the same names in the same order; only the leaf values differ. The layout learned from
one record holds for all records with the same fixed text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.keys import KeyProblem

Path = tuple[str, ...]
_TOKEN = re.compile(rb'"[^"\\]*"|[^ "{}\[\],:]+|[{}\[\],:]')
_MOST_LEAVES = 128
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")


class NoLayout(Exception):  # noqa: N818 - not an error: another decoder takes the value
    """The value has no layout that other values could share."""


@dataclass(frozen=True, kw_only=True)
class JsonLeaf:
    """A value that is no object and no array.

    `is_text`: a string, whose quotation marks belong to the fixed text; otherwise a number, `true`, `false` or `null`.
    `size_bytes`: its size in the value that the layout was learned from.
    """

    is_text: bool
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class JsonLayout:
    """A layout: `texts[i]` stands before leaf `i`, the last text behind all leaves.

    `leaf_numbers`: the leaves that a path of names leads to. `branches`: the paths of objects and arrays.
    """

    texts: tuple[bytes, ...]
    leaves: tuple[JsonLeaf, ...]
    leaf_numbers: Mapping[Path, int]
    branches: frozenset[Path]

    @property
    def names(self) -> set[str]:
        """The names at the top of the object."""
        return {path[0] for path in (*self.leaf_numbers, *self.branches) if path}


def learn_layout(value: bytes, above: int = 0) -> JsonLayout:
    """Learn the layout of a value, which stands so deep in another one.

    Raises:
        NoLayout: it is no JSON object, or has an escape, a control character, a name twice or very many leaves.
    """
    try:
        parse_document(value, above)
    except KeyProblem:
        raise NoLayout from None
    if b"\\" in value or min(value) < ord(" ") or not value.startswith((b"{", b" ")):
        raise NoLayout
    walk = _TokenWalk()
    for token in _TOKEN.finditer(value):
        walk.take(token[0], token.start())
    if len(walk.leaves) > _MOST_LEAVES:
        raise NoLayout
    starts = [0, *(start + leaf.size_bytes for start, leaf in walk.leaves)]
    ends = [*(start for start, _ in walk.leaves), len(value)]
    return JsonLayout(
        texts=tuple(value[start:end] for start, end in zip(starts, ends, strict=True)),
        leaves=tuple(leaf for _, leaf in walk.leaves),
        leaf_numbers=walk.leaf_numbers,
        branches=frozenset(walk.branches),
    )


@dataclass
class _Node:
    """An object or array whose end is not reached. `path` is None below an array: no path of names leads there."""

    path: Path | None
    is_object: bool
    name: str | None = None
    names: set[str] = field(default_factory=set)


@dataclass
class _TokenWalk:
    """A walk through the tokens of one object, with what it has found."""

    leaves: list[tuple[int, JsonLeaf]] = field(default_factory=list)
    leaf_numbers: dict[Path, int] = field(default_factory=dict)
    branches: set[Path] = field(default_factory=set)
    open: list[_Node] = field(default_factory=list)

    def take(self, token: bytes, start: int) -> None:
        """Take the next token, which begins at `start`."""
        if token in _OPENING:
            self._enter(is_object=token == b"{")
        elif token in _CLOSING:
            self.open.pop()
        elif token == b",":
            self.open[-1].name = None
        elif token != b":":
            self._name_or_leaf(token, start)

    def _enter(self, *, is_object: bool) -> None:
        path = self._path() if self.open else ()
        if path is not None:
            self.branches.add(path)
        self.open.append(_Node(path if is_object else None, is_object))

    def _path(self) -> Path | None:
        """Return the path of the value that begins now."""
        node = self.open[-1]
        return None if node.path is None or node.name is None else (*node.path, node.name)

    def _name_or_leaf(self, token: bytes, start: int) -> None:
        node, is_text = self.open[-1], token.startswith(b'"')
        if node.is_object and node.name is None:
            node.name = token[1:-1].decode()
            if node.name in node.names:
                raise NoLayout
            node.names.add(node.name)
            return
        if (path := self._path()) is not None:
            self.leaf_numbers[path] = len(self.leaves)
        content = token[1:-1] if is_text else token
        self.leaves.append((start + is_text, JsonLeaf(is_text=is_text, size_bytes=len(content))))
