"""Turn an Avro schema and the wanted places of its values into the steps that scan many bodies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from makewhole.compute.decode.avro.schema import AvroType
from makewhole.compute.decode.json_layout import Path
from makewhole.native import avro_scan

_MOST_STEPS = 4_000
_STEPS = {
    "boolean": avro_scan.BOOLEAN,
    "int": avro_scan.INT,
    "long": avro_scan.LONG,
    "float": avro_scan.FLOAT,
    "double": avro_scan.DOUBLE,
    "bytes": avro_scan.BYTES,
    "string": avro_scan.STRING,
    "fixed": avro_scan.FIXED,
    "enum": avro_scan.ENUM,
}
_SIZES = {"float": 4, "double": 8}


class NoProgram(Exception):  # noqa: N818 - not an error: values of the schema are decoded one by one
    """Bodies of the schema cannot be scanned for what is wanted."""


@dataclass(frozen=True, kw_only=True)
class AvroProgram:
    """The steps, and of each wanted path its column and type; None where the schema has no such place."""

    steps: avro_scan.AvroSteps
    leaves: Mapping[Path, tuple[int, AvroType] | None]

    @property
    def columns(self) -> int:
        return sum(leaf is not None for leaf in self.leaves.values())


def compile_schema(schema: AvroType, wanted: Iterable[Path], divided_at: Path | None = None) -> AvroProgram:
    """Compile a schema. `divided_at`: the array whose items have rows of their own, and stand in its place.

    Raises:
        NoProgram: it contains itself, something wanted is no simple value of one type, or no array is there.
    """
    top = schema.branch_beside_null()
    if top is None or top.kind != "record":
        raise NoProgram
    steps = _Steps(frozenset(wanted), divided_at)
    steps.add(schema, (), ())
    steps.step(avro_scan.END)
    if divided_at is not None and not steps.is_divided:
        raise NoProgram
    code: Any = np.array(steps.made, dtype=np.int64).T.copy()
    jumps = np.array(steps.jumps or [0], dtype=np.int64)
    program = avro_scan.AvroSteps(code[0], code[1], code[2], code[3], jumps)
    return AvroProgram(steps=program, leaves={path: steps.leaves.get(path) for path in steps.wanted})


@dataclass
class _Steps:
    """The steps of a program, as they are made."""

    wanted: frozenset[Path]
    divided_at: Path | None = None
    is_divided: bool = False
    made: list[list[int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    leaves: dict[Path, tuple[int, AvroType]] = field(default_factory=dict)
    depth: int = 0

    def step(self, kind: int, number: int = 0, jumps_from: int = 0, column: int = -1) -> None:
        if len(self.made) >= _MOST_STEPS:
            raise NoProgram
        self.made.append([kind, number, jumps_from, column])

    def add(self, kind: AvroType, path: Path | None, within: tuple[AvroType, ...]) -> None:
        """Add the steps of a type; `path` None: no path of names leads there. `within`: the types that it is part
        of."""
        if kind in within:
            raise NoProgram
        if kind.kind == "array" and path is not None and path == self.divided_at and not self.is_divided:
            if kind.inner[0].counted_type() is not None:  # which its placeholder is not read by
                raise NoProgram
            self.is_divided = True
            self._items(kind, path, (*within, kind), are_elements=True)
        elif kind.is_simple:
            self._simple(kind, path)
        elif kind.kind == "union":
            self._union(kind, path, (*within, kind))
        elif path in self.wanted:
            raise NoProgram
        elif kind.kind == "record":
            for name, inner in zip(kind.names, kind.inner, strict=True):
                self.add(inner, None if path is None else (*path, name), (*within, kind))
        else:
            self._items(kind, path, (*within, kind))

    def _simple(self, kind: AvroType, path: Path | None) -> None:
        if kind.kind == "null":
            return
        column = -1
        if path is not None and path in self.wanted:
            column = len(self.leaves)
            self.leaves[path] = (column, kind)
        size = len(kind.symbols) if kind.kind == "enum" else _SIZES.get(kind.kind, kind.size)
        self.step(_STEPS[kind.kind], size, column=column)

    def _union(self, kind: AvroType, path: Path | None, within: tuple[AvroType, ...]) -> None:
        if path is not None and kind.branch_beside_null() is None:
            self._refuse_below(path)
            path = None
        first = len(self.jumps)
        self.jumps += [0] * len(kind.inner)
        self.step(avro_scan.UNION, len(kind.inner), first)
        ends = []
        for number, branch in enumerate(kind.inner):
            self.jumps[first + number] = len(self.made)
            if path == () and branch.kind == "null":
                self.step(avro_scan.ENUM)  # of no symbols: null in place of a record is left
            self.add(branch, path, within)
            ends.append(len(self.made))
            self.step(avro_scan.JUMP)
        for end in ends:
            self.made[end][1] = len(self.made)

    def _items(
        self, kind: AvroType, path: Path | None, within: tuple[AvroType, ...], *, are_elements: bool = False
    ) -> None:
        if kind.kind == "array" and not are_elements and not kind.inner[0].has_bytes():
            raise NoProgram  # each block could have as many as there are bytes; of elements there are no more in all
        if path is not None and kind.kind == "map":
            self._refuse_below(path)
        self.depth += 1
        if self.depth > avro_scan.MOST_NESTED:
            raise NoProgram
        start = len(self.made)
        self.step(avro_scan.ELEMENTS if are_elements else avro_scan.BLOCKS, 0, start + 1)
        if kind.kind == "map":
            self.step(avro_scan.STRING)
        self.add(kind.inner[0], path if are_elements else None, within)
        self.step(avro_scan.NEXT_ELEMENT if are_elements else avro_scan.NEXT, len(self.made) + 1, start + 1)
        self.made[start][1] = len(self.made)
        self.depth -= 1

    def _refuse_below(self, path: Path) -> None:
        """Refuse what is wanted at a path or below it: its names or its type are another in each value."""
        if any(wanted[: len(path)] == path for wanted in self.wanted):
            raise NoProgram
