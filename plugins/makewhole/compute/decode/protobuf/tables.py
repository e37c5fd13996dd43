"""Turn the type of a Protobuf message and the wanted places of its values into the tables that scan many messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from makewhole.compute.decode.avro.schema import bytes_value, float_value
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.protobuf.reference import TIMESTAMP, WRAPPERS, is_map, is_one_value, symbol_of
from makewhole.compute.decode.raw_columns import Raw, RawKind
from makewhole.compute.moments import moment_text
from makewhole.native import protobuf_scan as scan

_MOST_FIELDS, _MOST_FIELD_NUMBER = 20_000, 2_000
_GROUP, _MESSAGE, _ENUM = 10, 11, 14


class NoTables(Exception):  # noqa: N818 - not an error: values of the type are decoded one by one
    """Messages of the type cannot be scanned for what is wanted."""


class _Simple(NamedTuple):
    what: int
    wire: int
    raw: Raw


_SIMPLE = {  # by the number of FieldDescriptor
    1: _Simple(scan.BITS64, scan.FIXED64, Raw.DOUBLE),
    2: _Simple(scan.BITS32, scan.FIXED32, Raw.OTHER_NUMBER),
    3: _Simple(scan.NUMBER, scan.VARINT, Raw.INTEGER),
    4: _Simple(scan.UINT64, scan.VARINT, Raw.INTEGER),
    5: _Simple(scan.INT32, scan.VARINT, Raw.INTEGER),
    6: _Simple(scan.UINT64, scan.FIXED64, Raw.INTEGER),
    7: _Simple(scan.UINT32, scan.FIXED32, Raw.INTEGER),
    8: _Simple(scan.BOOLEAN, scan.VARINT, Raw.BOOLEAN),
    9: _Simple(scan.TEXT, scan.SIZED, Raw.TEXT),
    12: _Simple(scan.BYTES, scan.SIZED, Raw.OTHER_BYTES),
    13: _Simple(scan.UINT32, scan.VARINT, Raw.INTEGER),
    14: _Simple(scan.INT32, scan.VARINT, Raw.OTHER_NUMBER),
    15: _Simple(scan.SIGNED32, scan.FIXED32, Raw.INTEGER),
    16: _Simple(scan.NUMBER, scan.FIXED64, Raw.INTEGER),
    17: _Simple(scan.SINT32, scan.VARINT, Raw.INTEGER),
    18: _Simple(scan.SINT64, scan.VARINT, Raw.INTEGER),
}


@dataclass(frozen=True, kw_only=True)
class ProtobufLeaf:
    """A wanted value: what its column holds; of a Timestamp the column of its nanoseconds, too."""

    column: int
    kind: RawKind
    nanoseconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class ProtobufTables:
    """The tables, and of each wanted path its leaf; None where the type has no such place."""

    types: scan.Types
    columns: int
    leaves: Mapping[Path, ProtobufLeaf | None]


def compile_type(descriptor: Any, wanted: Iterable[Path], divided_at: Path | None = None) -> ProtobufTables:
    """Compile the type of a message. `divided_at`: the repeated field whose values have rows of their own, and stand in
    its place.

    Raises:
        NoTables: it has fields of a kind that is not scanned, something wanted is no simple value, or no values that
            could have rows are there.
    """
    made = _TypeTables(frozenset(wanted), divided_at)
    made.instance(descriptor, ())
    made.finish()
    if divided_at is not None and not made.is_divided:
        raise NoTables
    return made.tables()


@dataclass
class _Instance:
    """A type as it is read at one place: where its values go to columns, or (`path` None) anywhere else."""

    descriptor: Any
    path: Path | None
    fields: dict[int, list[int]] = field(default_factory=dict)
    implied: list[int] = field(default_factory=list)


@dataclass
class _TypeTables:
    """The tables, as they are made."""

    wanted: frozenset[Path]
    divided_at: Path | None = None
    is_divided: bool = False
    instances: list[_Instance] = field(default_factory=list)
    generic: dict[str, int] = field(default_factory=dict)
    leaves: dict[Path, ProtobufLeaf] = field(default_factory=dict)
    columns: int = 0
    bits: dict[tuple[Path, str], int] = field(default_factory=dict)

    def instance(self, descriptor: Any, path: Path | None) -> int:
        """Return the number of a type at a path."""
        if path is None and descriptor.full_name in self.generic:
            return self.generic[descriptor.full_name]
        if descriptor.is_extendable:
            raise NoTables
        self.instances.append(_Instance(descriptor, path))
        number = len(self.instances) - 1
        if path is None:
            self.generic[descriptor.full_name] = number
        return number

    def finish(self) -> None:
        """Make the fields of every type, and of those that come with them."""
        done = fields = 0
        while done < len(self.instances):
            made = self.instances[done]
            for descriptor in made.descriptor.fields:
                made.fields[descriptor.number] = self._field(made, descriptor)
            fields += max(made.fields, default=0)
            if fields > _MOST_FIELDS or max(made.fields, default=0) > _MOST_FIELD_NUMBER:
                raise NoTables
            done += 1

    def _field(self, made: _Instance, descriptor: Any) -> list[int]:
        """Return the row of a field: what it is, wire type, packable, inner type, column, bit, whether its values are
        elements."""
        if descriptor.type == _GROUP or descriptor.is_required:
            raise NoTables
        path = None if made.path is None else (*made.path, descriptor.name)
        leads = path is not None and self._leads(path)
        are_elements = leads and path == self.divided_at
        if leads and descriptor.is_repeated is not are_elements:
            raise NoTables
        bit = self._bit(made, descriptor) if (leads and not are_elements) or self._shares_bit(made, descriptor) else -1
        if are_elements:
            self._divide(descriptor)
        if descriptor.type == _MESSAGE:
            inner = self._message(descriptor, path if leads else None)
            return [scan.MESSAGE, scan.SIZED, 0, inner, -1, bit, int(are_elements)]
        simple = _SIMPLE[descriptor.type]
        column = -1
        if leads and path in self.wanted:
            column = self._leaf(path, descriptor, simple)
            if not descriptor.has_presence and not are_elements:
                made.implied.append(column)
        is_packable = descriptor.is_repeated and simple.wire != scan.SIZED
        return [simple.what, simple.wire, int(is_packable), 0, column, bit, int(are_elements)]

    def _leads(self, path: Path) -> bool:
        """Return whether something wanted is at a path or below it, or the elements are."""
        divided = () if self.divided_at is None else (self.divided_at,)
        return any(place[: len(path)] == path for place in (*self.wanted, *divided))

    def _divide(self, descriptor: Any) -> None:
        """Note that the elements are there. Packed numbers are no values one by one, and a map is an object."""
        if is_map(descriptor) or (descriptor.type != _MESSAGE and _SIMPLE[descriptor.type].wire != scan.SIZED):
            raise NoTables
        self.is_divided = True

    def _shares_bit(self, made: _Instance, descriptor: Any) -> bool:
        """Return whether a member of the same oneof is wanted, which this one would take the place of."""
        if made.path is None or descriptor.containing_oneof is None:
            return False
        paths = [(*made.path, member.name) for member in descriptor.containing_oneof.fields]
        return any(map(self._leads, paths))

    def _bit(self, made: _Instance, descriptor: Any) -> int:
        group = descriptor.name if descriptor.containing_oneof is None else f"oneof {descriptor.containing_oneof.name}"
        bit = self.bits.setdefault((made.path or (), group), len(self.bits))
        if bit >= scan.MOST_ONCE:
            raise NoTables
        return bit

    def _bits_of_element(self) -> int:
        own = self.divided_at
        return sum(1 << bit for (path, _), bit in self.bits.items() if own is not None and path[: len(own)] == own)

    def _message(self, descriptor: Any, path: Path | None) -> int:
        """Return the number of the type of a field; a Timestamp or a wrapper that is wanted is one value."""
        kind = descriptor.message_type
        if path is None or is_map(descriptor):
            return self.instance(kind, None)
        if kind.full_name == TIMESTAMP and path in self.wanted:
            return self._timestamp(kind, path)
        if kind.full_name in WRAPPERS and path in self.wanted:
            return self._wrapper(kind, path)
        if path in self.wanted:
            raise NoTables
        return self.instance(kind, None if is_one_value(kind) else path)  # of a moment no field is read

    def _timestamp(self, kind: Any, path: Path) -> int:
        seconds, nanoseconds = self._column(), self._column()
        self.leaves[path] = ProtobufLeaf(
            column=seconds, nanoseconds=nanoseconds, kind=RawKind(raw=Raw.MOMENT, json_value=_as_moment, scale=10**6)
        )
        return self._of_columns(kind, {"seconds": seconds, "nanos": nanoseconds})

    def _wrapper(self, kind: Any, path: Path) -> int:
        value = kind.fields_by_name["value"]
        return self._of_columns(kind, {"value": self._leaf(path, value, _SIMPLE[value.type])})

    def _of_columns(self, kind: Any, columns: Mapping[str, int]) -> int:
        """Return the number of a type whose fields go to columns, with their defaults where they are absent."""
        made = _Instance(kind, None, implied=list(columns.values()))
        self.instances.append(made)
        number = len(self.instances) - 1
        own = {}
        for name, column in columns.items():
            descriptor = kind.fields_by_name[name]
            simple = _SIMPLE[descriptor.type]
            own[descriptor.number] = [simple.what, simple.wire, 0, 0, column, -1, 0]
        made.fields = own
        made.descriptor = _NO_FIELDS
        return number

    def _leaf(self, path: Path, leaf: Any, simple: _Simple) -> int:
        if leaf.type == _ENUM and leaf.enum_type.is_closed:
            raise NoTables
        column = self._column()
        self.leaves[path] = ProtobufLeaf(column=column, kind=RawKind(raw=simple.raw, json_value=_json_value(leaf)))
        return column

    def _column(self) -> int:
        self.columns += 1
        return self.columns - 1

    def tables(self) -> ProtobufTables:
        """Return the tables as the scan takes them."""
        most = [max(made.fields, default=0) for made in self.instances]
        first = np.cumsum([0, *most[:-1]])
        rows = np.zeros((sum(most) or 1, 7), dtype=np.int64)
        rows[:, 4:6] = -1
        for start, made in zip(first.tolist(), self.instances, strict=True):
            for number, row in made.fields.items():
                rows[start + number - 1] = row
        kinds, wires, packable, inner, columns, once, are_elements = rows.T.copy()
        implied = [column for made in self.instances for column in made.implied]
        types = scan.Types(
            first=first.astype(np.int64),
            most=np.array(most, dtype=np.int64),
            kinds=kinds,
            wires=wires,
            is_packable=packable.astype(np.bool_),
            inner=inner,
            columns=columns,
            once=once,
            implied=np.array(implied or [0], dtype=np.int64),
            implied_from=np.cumsum([0, *(len(made.implied) for made in self.instances)]).astype(np.int64),
            are_elements=are_elements.astype(np.bool_),
            of_element=np.array([self._bits_of_element()], dtype=np.int64),
        )
        return ProtobufTables(
            types=types, columns=self.columns, leaves={path: self.leaves.get(path) for path in self.wanted}
        )


class _NoFields:
    fields: tuple[Any, ...] = ()


_NO_FIELDS = _NoFields()


def _json_value(descriptor: Any) -> Any:
    """Return what makes the JSON value of a field of its number, or of its bytes, as a scan records them."""
    if descriptor.enum_type is not None:
        return symbol_of(descriptor)
    return {1: partial(_real, np.uint64), 2: partial(_real, np.uint32), 8: bool, 9: bytes.decode, 12: bytes_value}.get(
        descriptor.type, int
    )


def _real(width: Any, bits: int) -> Any:
    number = np.array([bits], dtype=np.int64).astype(width)
    return float_value(number.view(np.float64 if width is np.uint64 else np.float32)[0])


def _as_moment(microseconds: int) -> str:
    return moment_text(microseconds, 10**6, "Z")
