"""Find the filters of the windows before by which a window still reads its ledgers, where the file has others since."""

from collections.abc import Mapping
from dataclasses import replace

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
        if where and can_look_up(pipeline.points[pipeline.hop(name).source]):
            hops = tuple(replace(hop, where=where) if hop.name == name else hop for hop in pipeline.hops)
            try:
                read = readable_tables(replace(pipeline, hops=hops), connections)
            except ConfigurationError:
                continue
            types = replace(types, filters={**read.types.filters, **types.filters})
        readable[name] = where
    return readable, types
