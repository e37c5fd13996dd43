"""Gather what every step of a window needs: the pipeline, the window, connections and storage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.key_layout import with_layout
from makewhole.compute.row_filter import TypedTerm, filter_terms
from makewhole.compute.same_place import with_former_filters, with_identities
from makewhole.config.connections import from_environment
from makewhole.config.pipeline_file import find_pipeline as find_pipeline
from makewhole.journal import windows
from makewhole.kinds import tables_of
from makewhole.lake.storage import Storage
from makewhole.model.connection import Connection, KafkaConnection, kafka_of
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import as_compared_on, columns_asked_at
from makewhole.model.points import TablePoint, TopicPoint
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape
from makewhole.tables.tables import Tables
from makewhole.window.formats import elements_of, format_of, record_key_format_of
from makewhole.window.spark_steps.sent_connections import ServerDigests, resolve, server_digests


@dataclass(frozen=True, kw_only=True)
class WindowContext:
    """A window with its pipeline, connections and storage; small enough to be sent to executors with their tasks.

    It is sent without its connections: who receives it has those of its own machine.
    """

    pipeline: Pipeline
    window: Window
    connections: Mapping[str, Connection]
    storage: Storage

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.pipeline, self.window, self.storage, server_digests(self.connections))

    def as_compared_on(self, hop: Hop) -> "WindowContext":
        """Return the context with the pipeline as a hop sees it: with the columns that this hop compares."""
        pipeline = as_compared_on(self.pipeline, hop)
        return self if pipeline is self.pipeline else replace(self, pipeline=pipeline)

    def kafka(self, point: TopicPoint) -> KafkaConnection:
        """Return the connection of a topic."""
        return kafka_of(self.connections[point.connection])

    def tables(self, point: TablePoint) -> Tables:
        """Return the tables that the connection of a table reaches."""
        return tables_of(self.connections[point.connection])

    def value_shape(self, point: TopicPoint) -> ValueShape:
        """Return the columns to decode from the records of a topic."""
        return value_shape(self.pipeline, point, self.storage)

    def table_shape(self, point: TablePoint) -> TableShape:
        """Return the columns to read from the rows of a table."""
        return table_shape(self.pipeline, point)


def _received(pipeline: Pipeline, window: Window, storage: Storage, servers: ServerDigests) -> WindowContext:
    """Make the context again from what was sent.

    Raises:
        ConfigurationError: a connection is not known on this machine, or leads to another server than there.
    """
    return WindowContext(
        pipeline=pipeline, window=window, connections=_all_limited(resolve(servers), pipeline), storage=storage
    )


def value_shape(pipeline: Pipeline, point: TopicPoint, storage: Storage | None = None) -> ValueShape:
    """Return the columns that a pipeline decodes from the records of a topic. `storage` None: that of the environment,
    which machines that carry tasks do not have."""
    hops = [hop for hop in pipeline.hops if point.name in (hop.source, hop.target)]
    takes_latest = any(hop.semantics is Semantics.UPSERT for hop in hops)
    return ValueShape(
        key=point.key,
        key_layout=point.key_layout,
        compare=columns_asked_at(pipeline, point.name),
        filters=_filters(pipeline, point.name),
        version=point.version,
        format=format_of(point, storage),
        record_key=record_key_format_of(point, storage),
        keeps_tombstones=takes_latest or point in pipeline.topics_alone,
        tombstones_erase=pipeline.has_erasures(point.name),
        places=dict(point.columns),
        elements=elements_of(point, storage, takes_latest=takes_latest),
    )


def key_shape(point: TopicPoint, *, tombstones_erase: bool = False) -> ValueShape:
    """Return what is decoded from the records of a topic for their keys alone."""
    return ValueShape(
        key=point.key,
        key_layout=point.key_layout,
        compare={},
        format=format_of(point),
        record_key=record_key_format_of(point),
        keeps_tombstones=True,
        tombstones_erase=tombstones_erase,
        elements=elements_of(point),
    )


def table_shape(pipeline: Pipeline, point: TablePoint) -> TableShape:
    """Return the columns that a pipeline reads from the rows of a table."""
    return TableShape(
        point=point, compare=columns_asked_at(pipeline, point.name), filters=_filters(pipeline, point.name)
    )


def _filters(pipeline: Pipeline, point: str) -> dict[str, tuple[TypedTerm, ...]]:
    """Return the terms of the filters behind a point, by hop, and of those that the windows before knew."""
    hops = pipeline.hops_from(point)
    texts = {hop.name: hop.where for hop in hops if hop.where}
    texts |= {hop.former_name: hop.former_where for hop in hops if hop.former_where}
    return {name: filter_terms(text, pipeline.filter_types) for name, text in texts.items()}


def window_context(window: Window, pipeline: Pipeline | None = None) -> WindowContext:
    """Return the context of a window, which reads keys by the window's layout. `pipeline` None: it is read from its
    file.

    Raises:
        ConfigurationError: the pipeline is not known, or a connection or the storage is not configured.
    """
    pipeline = with_layout(pipeline or find_pipeline(window.pipeline), window.key_layout, window.value_types)
    pipeline = with_former_filters(with_identities(pipeline, window.places), window.former_filters)
    return WindowContext(
        pipeline=pipeline,
        window=window,
        connections=connections_of(pipeline),
        storage=Storage.from_environment(),
    )


def as_last_read(journal: PgConnection, pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with keys that are read as its newest window read them."""
    return with_layout(pipeline, *windows.last_types(journal, pipeline.name))


def connections_of(pipeline: Pipeline) -> dict[str, Connection]:
    """Read every connection that the pipeline names from the environment (`AIRFLOW_CONN_…`), or from the file of
    `MAKEWHOLE_CONNECTIONS`.

    No statement at a database may take longer than the longest of the pipeline's time limits.

    Raises:
        ConfigurationError: one is not there or cannot be read.
    """
    names = sorted({name for point in pipeline.points.values() for name in point.connections})
    return _all_limited({name: from_environment(name) for name in names}, pipeline)


def _all_limited(connections: Mapping[str, Connection], pipeline: Pipeline) -> dict[str, Connection]:
    seconds = pipeline.time_limits.longest.total_seconds()
    return {name: connection.limited(seconds) for name, connection in connections.items()}
