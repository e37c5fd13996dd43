"""Find the filters of the windows before by which a window still reads its sources, where the file has others since."""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.config.hops.where import Operator, parse_where
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.model.value_types import ValueTypes
from makewhole.window.opening.readable import readable_tables


def readable_filters(
    pipeline: Pipeline, connections: Mapping[str, Connection], former: Mapping[str, str], types: ValueTypes
) -> tuple[dict[str, str], ValueTypes]:
    """Return those of the `former` filters (hop → `where`) that the sources of their hops can still be read by, and
    `types` with the columns that they name. A table may have lost a column, or hold it in another type.

    Raises:
        TransientError: a database does not answer.
    """
    readable = dict[str, str]()
    for name, where in former.items():
        is_of_table = can_look_up(pipeline.points[pipeline.hop(name).source])
        if where and (is_of_table or _needs_types(where)):
            read = _types_of(pipeline, connections, name, where)
            if read is None and is_of_table:
                continue
            types = types if read is None else replace(types, filters={**read.filters, **types.filters})
        readable[name] = where
    return readable, types


def _types_of(pipeline: Pipeline, connections: Mapping[str, Connection], name: str, where: str) -> ValueTypes | None:
    """Return the types by which a hop's filter of before is read; None: the tables cannot be read by it."""
    hops = tuple(replace(hop, where=where) if hop.name == name else hop for hop in pipeline.hops)
    try:
        return readable_tables(replace(pipeline, hops=hops), connections).types
    except ConfigurationError:
        return None


def _needs_types(where: str) -> bool:
    """Return whether a filter of records asks more than whether fields equal their literals."""
    return any(term.operator is not Operator.EQUAL for term in parse_where(where))
