"""Describe a table that exists, and its columns. Types have the names of SQL, as PostgreSQL writes them."""

from collections.abc import Mapping
from dataclasses import dataclass

INTEGERS = ("smallint", "integer", "bigint")
TEXTS = ("text", "character varying", "character")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table. `type` is without its modifier (`character varying`, not `character varying(3)`);
    `base_type` is the same, but of a domain the type that it is made of.

    `is_required`: it takes no null. `has_default`: a row that does not name it gets a value all the same.
    """

    name: str
    type: str
    base_type: str
    is_generated: bool
    is_identity_always: bool
    is_required: bool
    has_default: bool


@dataclass(frozen=True, kw_only=True)
class TableDescription:
    """A table that exists, with its columns in order."""

    schema: str
    name: str
    columns: Mapping[str, Column]

    @property
    def base_types(self) -> Mapping[str, str]:
        """The types of its columns by name, without modifiers; of a domain the type that it is made of."""
        return {name: column.base_type for name, column in self.columns.items()}

    @property
    def writable(self) -> tuple[str, ...]:
        """Names of the columns that an insert may set."""
        return tuple(column.name for column in self.columns.values() if not column.is_generated)

    @property
    def unfilled(self) -> tuple[str, ...]:
        """Names of the columns that are null in a row whose insert does not set them."""
        return tuple(name for name in self.writable if not self.columns[name].has_default)


def bare(column_type: str) -> str:
    """Return a type without its modifier: `numeric(10,2)` is a numeric, `timestamp(3) with time zone` has a zone."""
    name, _, rest = column_type.partition("(")
    return name + rest.partition(")")[2]
