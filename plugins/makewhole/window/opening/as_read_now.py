"""Decide by which types and places the points of a window are read now."""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window
from makewhole.window.opening.former_filters import readable_filters
from makewhole.window.opening.observe import topic_logs
from makewhole.window.opening.readable import ReadableTables, readable_tables


def as_read_now(pipeline: Pipeline, connections: Mapping[str, Connection], window: Window) -> Window:
    """Return a window with the types and places by which its points would be read if it was judged again.

    Raises:
        ConfigurationError: a table or a column does not exist or cannot be what the file says.
        TransientError: a server does not answer.
    """
    tables = readable_tables(pipeline, connections)
    with topic_logs(pipeline.ordered_points(), connections) as logs:
        places = places_of(tables, {name: log.describe().topic_id for name, log in logs.items()})
    return with_types(pipeline, connections, replace(window, places=places), tables)


def places_of(tables: ReadableTables, topic_ids: Mapping[str, str]) -> dict[str, str]:
    """Return what the place of each point is, by the catalogues and the ids of topics."""
    return {**tables.columns.places, **{name: f"kafka:{topic_id}" for name, topic_id in topic_ids.items()}}


def with_types(
    pipeline: Pipeline, connections: Mapping[str, Connection], window: Window, tables: ReadableTables
) -> Window:
    """Return a window with the types by which its points are read, and those of its former filters that can be.

    Raises:
        TransientError: a database does not answer.
    """
    readable, types = readable_filters(pipeline, connections, window.former_filters, tables.types)
    return replace(window, key_layout=tables.layout, value_types=types, former_filters=readable)
