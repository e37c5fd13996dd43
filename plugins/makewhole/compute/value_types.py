"""Decide by which types the columns of a pipeline are read, and name every column that cannot be what its file says.

A column that the file declares a `string` is read in its own type where its texts have several spellings: PostgreSQL
writes a moment with `T` in JSON and with a space in COPY, an array as `[1,2]` and as `{1,2}`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from makewhole.compute.canonical import ARRAY, decimal_scale, moment_digits
from makewhole.compute.moments import MICROSECOND_DIGITS
from makewhole.compute.row_filter import Unread, filter_value, is_number, is_ordered, literal_type
from makewhole.compute.versions import version_unit
from makewhole.config.hops.where import ORDERING, Literal, WhereTerm, parse_where
from makewhole.model.errors import Problem
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import all_compared
from makewhole.model.points import TablePoint, can_look_up, has_log
from makewhole.model.value_types import UNITS, ValueTypes

_TEXT, _OWN = "string", "own"
_NATURES = {
    "smallint": "int",
    "integer": "int",
    "bigint": "int",
    "numeric": "int",
    "real": "double",
    "double precision": "double",
    "money": "money",
    "boolean": "boolean",
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp",
    "date": "date",
    "time without time zone": "time",
    "macaddr": "macaddr",
    "uuid": "uuid",
    "inet": "inet",
    "cidr": "inet",
    "json": "json",
    "jsonb": "json",
    "character": "char",
    "bpchar": "char",
    "text": _TEXT,
    "character varying": _TEXT,
    "citext": _TEXT,
    "name": _TEXT,
}
_UNREAD_ELEMENTS = ("box", "json", "jsonb")
"""Types whose arrays no type reads: boxes are parted by semicolons, and in JSON an element looks like a dimension."""
_NUMBERS = {"int", "double", "money", _TEXT, "char"}
_DAYS = {"timestamp", "date", _TEXT, "char"}
_ACCEPTED = {
    "int": _NUMBERS,
    "bigint": _NUMBERS,
    "double": _NUMBERS,
    "boolean": {"boolean", "int", _TEXT, "char"},
    "date": _DAYS,
    "json": {"json", _TEXT, "char"},
}
"""Declared type → the natures of columns whose values can be of it. Arrays are JSON, too."""
_DECLARATIONS = {"int": "decimal(38,9)", "money": "decimal(38,9)"}
_MOMENT = re.compile(r"timestamp\((\d)\)", re.ASCII)
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)", re.ASCII)
_MOST_DIGITS = 38
_PLAIN = {"smallint": "int", "integer": "int", "bigint": "bigint"}


@dataclass(frozen=True, kw_only=True)
class ColumnKind:
    """The type of a column as the catalogue writes it without its modifier and with it (`full_type`), and its nature:
    the type by which its values are distinguished. `own`: by the text that PostgreSQL writes; None: not at all."""

    type: str
    nature: str | None
    full_type: str = ""

    @classmethod
    def of(
        cls, column_type: str, *, element: str | None = None, is_opaque: bool = False, full_type: str = ""
    ) -> "ColumnKind":
        """Return the kind of a column; `element` is the type of an array's elements. `is_opaque`: PostgreSQL writes it
        in JSON as something else than its text, which no declared type reads (a composite type)."""
        if is_opaque or element in _UNREAD_ELEMENTS:
            return cls(type=column_type, nature=None)
        if element is None:
            return cls(type=column_type, nature=_NATURES.get(column_type, _OWN), full_type=full_type)
        of_element = _NATURES.get(element, _OWN)
        read = {_OWN: _TEXT, "money": _TEXT, "time": _TEXT, "macaddr": _TEXT, "double": "int"}.get(
            of_element, of_element
        )
        return cls(type=column_type, nature=f"{read}{ARRAY}")


Kinds = Mapping[str, Mapping[str, ColumnKind]]
"""Table point → its columns."""


def value_types(pipeline: Pipeline, kinds: Kinds) -> tuple[ValueTypes, list[Problem]]:
    """Return the types by which columns are read, and every column that cannot be what the file says."""
    columns = _TypedColumns(pipeline=pipeline, kinds=kinds)
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for name, declared, path in _declared(pipeline):
        if declared != _TEXT:
            problems += columns.unfit(name, declared, path)
            if declared == "double" and columns.floating(name) != declared:
                values[name] = columns.floating(name)
        elif (common := columns.common(name, path, problems)) != _TEXT:
            values[name] = common
    filters: dict[str, str] = {}
    terms = [(hop, term) for hop in pipeline.hops if hop.where for term in parse_where(hop.where)]
    for hop, term in terms:
        declared = columns.of_filter(hop, term, problems)
        filters[term.column] = declared if term.literals else filters.get(term.column, declared)
    problems += columns.unordered(terms, filters)
    problems += columns.unfit_roles()
    units = columns.version_units()
    return ValueTypes(values=values, filters=filters, version_units=units), list(dict.fromkeys(problems))


def _declared(pipeline: Pipeline) -> Iterator[tuple[str, str, str]]:
    """Yield each column with a declared type, and where the file declares it."""
    for name, declared in pipeline.compare.items():
        yield name, declared, f"compare.{name}"
    for hop in pipeline.hops:
        for name, declared in (hop.compare or {}).items():
            if name not in pipeline.compare:
                yield name, declared, f"hops {hop.name}.compare.{name}"
        for name, declared in hop.write.items():
            yield name, declared, f"hops {hop.name}.write.{name}"


@dataclass(frozen=True, kw_only=True)
class _TypedColumns:
    """The columns of a pipeline's tables."""

    pipeline: Pipeline
    kinds: Kinds
    named: dict[str, list[tuple[TablePoint, ColumnKind]]] = field(default_factory=dict)

    def of(self, name: str) -> list[tuple[TablePoint, ColumnKind]]:
        """Return the columns of this name."""
        if name not in self.named:
            tables = (self.pipeline.points[point] for point in self.kinds)
            self.named[name] = [
                (table, self.kinds[table.name][name])
                for table in tables
                if can_look_up(table) and name in self.kinds[table.name]
            ]
        return self.named[name]

    def unfit(self, name: str, declared: str, path: str) -> Iterator[Problem]:
        """Yield the columns of which no value is of a declared type."""
        for table, kind in self.of(name):
            if not _is_accepted(kind.nature, declared):
                yield _problem(
                    path,
                    f"{_column(table, name, kind)}, of which no value is compared as {declared}",
                    _declaration(name, kind),
                )
            elif (held := _less_exact(kind, declared)) is not None:
                yield _problem(
                    path,
                    f"{_column(table, name, kind.full_type)}, which does not hold every {declared}",
                    f"Write `{name}: {quoted_type(held)}`, and only what the column can hold is compared",
                )

    def common(self, name: str, path: str, problems: list[Problem]) -> str:
        """Return the type by which the columns of a name are distinguished together; a problem where there is none."""
        columns = self.of(name)
        for table, kind in columns:
            if kind.nature is None:
                problems.append(_problem(path, f"{_column(table, name, kind)}, which no type reads", _take_out(name)))
        natures = {kind.nature for _, kind in columns if kind.nature is not None}
        common = _common(natures)
        if common == "double":
            return self.floating(name)
        if common is None:
            listed = " and ".join(_column(table, name, kind) for table, kind in columns)
            problems.append(_problem(path, f"{listed}: no value is both", _take_out(name)))
        if common == "timestamp":
            return _timestamp_of(min(_digits(kind) for _, kind in columns if kind.nature == "timestamp"))
        return common or _TEXT

    def floating(self, name: str) -> str:
        """Return by which type of `FLOATING` the columns of a name are compared: a number that was widened from four
        bytes, or stands for them with more digits, is theirs where tables hold such alone."""
        types = {kind.type for _, kind in self.of(name) if kind.nature == "double"}
        return "real" if types == {"real"} else "double"

    def of_filter(self, hop: Hop, term: WhereTerm, problems: list[Problem]) -> str:
        """Return the type by which a term of a `where` is compared; a problem where a literal is none of it."""
        columns = self.of(term.column)
        common = _common({kind.nature for _, kind in columns if kind.nature is not None})
        declared = self._filter_type(term, common)
        if (wrong := self._unfit_literals(term, declared, common)) is not None:
            listed, literal = wrong
            remedy = "Write a literal that is one, or filter by another column"
            found = f"{listed}, and {literal!s:.40} is none that it can be compared with"
            problems.append(_problem(f"hops {hop.name}.where", found, remedy))
        problems += self._counted_otherwise(hop, term, declared)
        return declared

    def _counted_otherwise(self, hop: Hop, term: WhereTerm, declared: str) -> Iterator[Problem]:
        """Yield a term that compares a column as no moment, where the records count one in a unit."""
        unit = _unit_of(self.pipeline, [hop.source], term.column)
        if unit is not None and term.literals and moment_digits(declared) is None and declared != "date":
            yield _problem(
                f"hops {hop.name}.where",
                f"{hop.source} counts {term.column} in {unit}, and {term.literals[0]!s:.40} would be compared with it "
                f"as {declared}",
                "Write a moment or a day, such as '2013-01-31 12:00:00Z', or take the unit out at the point to filter "
                "by the number",
            )

    def unordered(self, terms: Sequence[tuple[Hop, WhereTerm]], types: Mapping[str, str]) -> Iterator[Problem]:
        """Yield the terms whose order is not the same on both sides; `types` are those of the filters' columns."""
        for hop, term in terms:
            declared = types[term.column]
            if term.operator in ORDERING and not is_ordered(declared):
                yield _unordered(f"hops {hop.name}.where", term, self.of(term.column), declared)

    def _filter_type(self, term: WhereTerm, common: str | None) -> str:
        """Return the type of the tables' columns, else that of `compare`, else that of the literals."""
        if not term.literals:
            return common or _TEXT
        if common == "double":
            return "int"
        if common not in (None, _TEXT):
            return str(common)
        own = literal_type(term.literals[0])
        unit = _unit_of(self.pipeline, self.pipeline.points, term.column)
        compared = _filter_type_of(all_compared(self.pipeline).get(term.column, UNITS[unit].type if unit else _TEXT))
        literals = [filter_value(literal, compared) for literal in term.literals]
        is_fit = all(_is_searchable(kind.nature, compared) for _, kind in self.of(term.column))
        is_fit = is_fit and not any(isinstance(literal, Unread) for literal in literals)
        if common is not None and compared != _TEXT and is_fit:
            return compared
        return "int" if decimal_scale(own) is not None else own

    def _unfit_literals(self, term: WhereTerm, declared: str, common: str | None) -> tuple[str, Literal] | None:
        """Return the columns of which no value is compared with a literal, and that literal."""
        for literal in term.literals:
            is_unread = isinstance(filter_value(literal, declared), Unread)
            is_unfit = is_unread or common is None or declared == "json" or declared.endswith(ARRAY)
            of_name = self.of(term.column)
            wrong = [(table, kind) for table, kind in of_name if is_unfit or not _is_searchable(kind.nature, declared)]
            if wrong:
                return " and ".join(_column(table, term.column, kind) for table, kind in wrong), literal
        return None

    def version_units(self) -> dict[str, str]:
        """Return how far apart two versions in the column of each point are at least, as texts."""
        points = {name: self.pipeline.points[name].version for name in self.kinds}
        return {
            name: str(version_unit(self.kinds[name][column].full_type)) for name, column in points.items() if column
        }

    def unfit_roles(self) -> Iterator[Problem]:
        """Yield the columns that cannot be the key or the time of their point."""
        for name, kinds in self.kinds.items():
            table = self.pipeline.table(name)
            for column in () if table.key_types else table.key:
                kind = kinds[column]
                if kind.nature in (None, "json") or str(kind.nature).endswith(ARRAY):
                    remedy = f"Name a column with one value, or compare its text: `key: {{{column}: string}}`"
                    yield _problem(f"points.{name}.key", f"{_column(table, column, kind)}, which is no key", remedy)
            if table.time and kinds[table.time].nature not in ("timestamp", "date"):
                found = f"{_column(table, table.time, kinds[table.time])}, which is no moment"
                yield _problem(
                    f"points.{name}.time",
                    found,
                    "Name a column of type timestamptz, timestamp or date, or a view that casts",
                )


def _unit_of(pipeline: Pipeline, points: Iterable[str], column: str) -> str | None:
    """Return the unit in which the records of one of these points count a column; None: in none."""
    topics = (pipeline.points[point] for point in points if has_log(pipeline.points[point]))
    units = (dict(topic.units).get(topic.column_place(column)) for topic in topics if has_log(topic))
    return next(filter(None, units), None)


def _common(natures: Iterable[str]) -> str | None:
    """Return the type by which values of several natures are compared; None: no value is of all."""
    rest = {"int" if nature == "money" else nature for nature in natures} - {_TEXT}
    if len(rest) > 1:
        rest -= {"char"}
    if rest == {"int", "double"}:
        return "int"
    if rest <= {_OWN}:
        return _TEXT
    if len(rest) == 1:
        return next(iter(rest))
    if rest == {"timestamp", "date"}:
        return "timestamp"
    return "json" if all(nature == "json" or nature.endswith(ARRAY) for nature in rest) and "json" in rest else None


def _less_exact(kind: ColumnKind, declared: str) -> str | None:
    """Return the declared type of all that a column holds, where that has fewer digits than the one of the file; None:
    it has enough."""
    digits, scale = moment_digits(declared), decimal_scale(declared)
    if digits is not None and kind.nature == "timestamp" and _digits(kind) < digits:
        return _timestamp_of(_digits(kind))
    match = _NUMERIC.fullmatch(kind.full_type)
    if scale is None or match is None or int(match[2]) >= scale:
        return None
    return f"decimal({declared.partition('(')[2].partition(',')[0]},{max(int(match[2]), 0)})"


def _digits(kind: ColumnKind) -> int:
    match = _MOMENT.search(kind.full_type)
    return MICROSECOND_DIGITS if match is None else int(match[1])


def _timestamp_of(digits: int) -> str:
    return "timestamp" if digits == MICROSECOND_DIGITS else f"timestamp({digits})"


def _filter_type_of(declared: str) -> str:
    """Return the type by which a filter reads a column of a declared type: numbers exactly, JSON as its literal."""
    return "int" if is_number(declared) else _TEXT if declared == "json" else declared


def _unordered(path: str, term: WhereTerm, columns: Sequence[tuple[TablePoint, ColumnKind]], declared: str) -> Problem:
    """Return the problem of an order that records and tables do not share."""
    listed = " and ".join(_column(table, term.column, kind) for table, kind in columns)
    compared = f"{listed}, compared as {declared}" if columns else f"{term.column} is compared as {declared}"
    why = "a database sorts texts by its collation, and records have none" if declared == _TEXT else "it has no order"
    return _problem(
        path,
        f"{compared}, and {term.column} {term.operator} {term.literals[0]!s:.40} needs an order that both sides share: "
        f"{why}",
        f"Compare numbers, timestamps or dates (`compare: {{{term.column}: timestamp}}` says the type where no table "
        "does), or name the values: `column in (literal, literal)`",
    )


def _is_accepted(nature: str | None, declared: str) -> bool:
    if moment_digits(declared) is not None:
        return nature in _DAYS
    accepted = _ACCEPTED["int"] if decimal_scale(declared) is not None else _ACCEPTED[declared]
    return nature in accepted or (declared == "json" and nature is not None and nature.endswith(ARRAY))


def _is_searchable(nature: str | None, declared: str) -> bool:
    """Return whether PostgreSQL itself can find the rows whose column equals a literal of this type."""
    if declared in ("timestamp", "date"):
        return nature in ("timestamp", "date")
    if declared == "uuid":
        return nature == "uuid"
    return nature is not None


def _column(table: TablePoint, name: str, kind: ColumnKind | str) -> str:
    column_type = kind if isinstance(kind, str) else kind.type
    return f"{table.table}.{table.column_place(name)} (point {table.name}) is of type {column_type}"


def declaration(kind: ColumnKind) -> str | None:
    """Return the type of a pipeline file that reads every value of a column; None: no type does."""
    if kind.nature is None:
        return None
    if kind.nature == "timestamp":
        return _timestamp_of(_digits(kind))
    match = _NUMERIC.fullmatch(kind.full_type)
    if match is not None and 0 <= int(match[2]) <= int(match[1]) <= _MOST_DIGITS:
        return f"decimal({match[1]},{match[2]})"
    declared = _PLAIN.get(kind.type) or _DECLARATIONS.get(kind.nature) or kind.nature
    return declared if declared in _ACCEPTED or decimal_scale(declared) is not None else _TEXT


def _declaration(name: str, kind: ColumnKind) -> str:
    """Return what to write for a column that is declared as something else than it is. An array is JSON, too."""
    is_array = kind.nature is not None and kind.nature.endswith(ARRAY)
    kept = "json" if is_array else declaration(kind)
    if kept is None:
        return _take_out(name)
    return f"Write `{name}: {quoted_type(kept)}`"


def quoted_type(declared: str) -> str:
    """Return a declared type as YAML reads it inside braces."""
    return f'"{declared}"' if "," in declared else declared


def _take_out(name: str) -> str:
    return f"Take {name} out, or name a view that makes one of PostgreSQL's plain types of it"


def _problem(path: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=path, found=found, remedy=remedy)
