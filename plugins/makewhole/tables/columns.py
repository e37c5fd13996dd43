"""Describe the columns of a pipeline's tables, as the systems that keep them say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.compute.key_layout import KeyColumns
from makewhole.compute.same_key import ColumnIds
from makewhole.compute.value_types import ColumnKind, Kinds
from makewhole.model.errors import Problem
from makewhole.tables.identities import PointPair, TableIdentity


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns of one table: the types of those of its key, the identities of these (two of one identity have the
    same values), and the kinds of all; what the table is, and what kind of relation (`r` a table, `v` a view, …)."""

    types: tuple[str, ...]
    ids: Mapping[str, str]
    kinds: Mapping[str, ColumnKind]
    relation: str
    identity: TableIdentity


@dataclass(frozen=True, kw_only=True)
class ColumnsRead:
    """The columns of tables: the types of those of keys, what the catalogue knows these by, and the kinds of all; what
    the catalogue says that each table is (`r` a table, `v` a view, …). `places`: what the place of each table is;
    `sharing`: each two points of which one is a partition, a child or a view of the other.

    `problems`: the tables and columns that do not exist; these tables are left out.
    """

    types: KeyColumns
    ids: ColumnIds
    kinds: Kinds
    relations: Mapping[str, str]
    places: Mapping[str, str] = field(default_factory=dict)
    sharing: tuple[PointPair, ...] = ()
    problems: list[Problem] = field(default_factory=list)
