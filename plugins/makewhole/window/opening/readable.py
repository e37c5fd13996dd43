"""Refuse a window whose tables cannot be read as the pipeline file says: every column at once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from makewhole.compute.canonical import PARTS
from makewhole.compute.key_layout import KeyLayout, key_layout
from makewhole.compute.same_place import with_identities
from makewhole.compute.value_types import Kinds, value_types
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import all_compared
from makewhole.model.value_types import ValueTypes
from makewhole.tables.columns import ColumnsRead
from makewhole.window.opening.abilities import unfit_abilities
from makewhole.window.opening.new_rows import unaccounted_columns
from makewhole.window.opening.shared_rows import compared_otherwise, shared_rows
from makewhole.window.opening.table_columns import read_columns
from makewhole.window.opening.version_columns import unfit_versions
from makewhole.window.opening.views import unfit_remedies
from makewhole.window.readers.unfit_progress import unfit_progress


@dataclass(frozen=True, kw_only=True)
class ReadableTables:
    """The columns of a pipeline's tables by the catalogues, and the types by which a window reads them."""

    columns: ColumnsRead
    layout: KeyLayout
    types: ValueTypes


def readable_tables(pipeline: Pipeline, connections: Mapping[str, Connection]) -> ReadableTables:
    """Return the types by which a pipeline's tables are read.

    Raises:
        ConfigurationError: with every table and column that does not exist or cannot be what the file says, and every
            column of new rows of which nothing says what it holds.
        TransientError: a database does not answer.
    """
    columns = read_columns(pipeline, connections)
    of_progress = unfit_progress(pipeline, connections)
    if columns.problems:
        raise ConfigurationError([*columns.problems, *of_progress])
    types, problems = value_types(pipeline, columns.kinds)
    types = _with_parts(types, pipeline, columns.kinds)
    problems += of_progress
    problems += unfit_versions(pipeline, columns.kinds)
    placed = with_identities(pipeline, columns.places)
    problems += [*shared_rows(placed, columns.sharing), *compared_otherwise(placed)]
    layout: KeyLayout = {}
    try:
        layout = key_layout(pipeline, columns.types)
    except ConfigurationError as error:
        problems += error.problems
    unfit = [*unfit_remedies(pipeline, columns.relations), *unfit_abilities(pipeline, connections)]
    problems += unfit or unaccounted_columns(pipeline, connections)
    if problems:
        raise ConfigurationError(problems)
    return ReadableTables(columns=columns, layout=layout, types=types)


def _with_parts(types: ValueTypes, pipeline: Pipeline, kinds: Kinds) -> ValueTypes:
    """Return the types with that of columns which a table holds in parts, and which are read as JSON otherwise."""
    written = {name: kind for hop in pipeline.hops for name, kind in hop.write.items()}
    read = types.of_values({**written, **all_compared(pipeline)})
    of_parts = {name for columns in kinds.values() for name, kind in columns.items() if kind.full_type == PARTS}
    parts = {name: PARTS for name, declared in read.items() if declared == "json" and name in of_parts}
    return replace(types, values={**types.values, **parts})


def problems_of_tables(pipeline: Pipeline, connections: Mapping[str, Connection]) -> tuple[Problem, ...]:
    """Return why a pipeline's tables cannot be read; nothing where they can. Raises as `readable_tables` but for it."""
    try:
        readable_tables(pipeline, connections)
    except ConfigurationError as error:
        return error.problems
    return ()
