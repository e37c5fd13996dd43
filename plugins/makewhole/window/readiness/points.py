"""Ask for everything that the points of a pipeline name: connections, topics, groups, tables, schemas."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType

from makewhole.config.connections import from_environment
from makewhole.journal.database import connect
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.replay import publish_identity, replay_identity
from makewhole.kafka.rights import READ, WRITE, MissingRight, missing_rights, missing_to_write
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection, KafkaConnection, RegistryConnection, kafka_of, registry_of
from makewhole.model.errors import MakewholeError, Problem
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, TopicPoint, can_look_up, has_log
from makewhole.registry import Registry, SchemaNotFoundError
from makewhole.tables.reading import BYTES_WITHOUT_INDEX
from makewhole.window.context import table_shape
from makewhole.window.opening.readable import problems_of_tables
from makewhole.window.opening.same_tables import changed_tables
from makewhole.window.readiness.mistakes import Readiness, Weight

_PATIENCE_SECONDS = 10.0
_FILE = "pipeline file"
_NONE: Mapping[str, str] = MappingProxyType({})
_ACTS: Mapping[Remedy, frozenset[str]] = {
    Remedy.UPSERT: frozenset({"insert", "update"}),
    Remedy.QUARANTINE: frozenset({"delete"}),
}
"""The acts of a remedy with rows of the target of its hop."""


def look_at_points(readiness: Readiness, pipeline: Pipeline, elsewhere: Mapping[str, str] = _NONE) -> None:
    """Note everything that is wrong with what the points name; a connection that is away leaves out what it leads to.
    `elsewhere`: connections that are, or may be, described where this process cannot read them, each with why."""
    connections = _read_connections(readiness, pipeline, _connections_of(pipeline), elsewhere)
    silent: set[str] = set()
    for point in pipeline.points.values():
        if has_log(point) and isinstance(connections.get(point.connection), KafkaConnection):
            _look_at_topic(readiness, pipeline, point, connections, silent)
            _look_at_schemas(readiness, point, connections)
    _look_at_tables(readiness, pipeline, connections, _look_at_changes(readiness, pipeline, connections))


def _look_at_changes(
    readiness: Readiness, pipeline: Pipeline, connections: Mapping[str, Connection]
) -> Mapping[str, Problem]:
    """Note tables that are gone or were replaced since the windows before read them; none where the journal, which is
    asked for by itself, does not answer. Return them by point."""
    try:
        with connect() as journal:
            changed = changed_tables(journal, pipeline, connections)
    except MakewholeError:
        return {}
    for problem in changed.values():
        readiness.note(problem)
    return changed


def look_at_tables(readiness: Readiness, pipeline: Pipeline) -> None:
    """Note what is wrong with the tables, and with the connections that lead to them, and nothing else."""
    named = {name: point for name, point in _connections_of(pipeline).items() if can_look_up(point)}
    _look_at_tables(readiness, pipeline, _read_connections(readiness, pipeline, named))


def _read_connections(
    readiness: Readiness,
    pipeline: Pipeline,
    named: Mapping[str, TablePoint | TopicPoint],
    elsewhere: Mapping[str, str] = _NONE,
) -> dict[str, Connection]:
    """Return the connections that are described as they should be, and lead to the kind of system that is needed."""
    connections: dict[str, Connection] = {}
    for name, point in sorted(named.items()):
        if name in elsewhere:
            readiness.not_asked.append(f"connection {name}: {elsewhere[name]}")
            continue
        with readiness.asking(f"connection {name}", f"points.{point.name}"):
            connection = from_environment(name).limited(pipeline.time_limits.longest.total_seconds())
            if name != point.connection:
                registry_of(connection)
            elif has_log(point):
                kafka_of(connection)
            else:
                tables_of(connection)
            connections[name] = connection
    return connections


def _connections_of(pipeline: Pipeline) -> dict[str, TablePoint | TopicPoint]:
    """Return, for each connection that points name, one of these points."""
    return {name: point for point in reversed([*pipeline.points.values()]) for name in point.connections}


# Topics


def _look_at_topic(
    readiness: Readiness, pipeline: Pipeline, point: TopicPoint, connections: Mapping[str, Connection], silent: set[str]
) -> None:
    """Ask for a topic, the rights on it, and the groups of hops that begin there; nothing of brokers that were asked
    for another topic in vain."""
    if point.connection in silent:
        readiness.not_asked.append(f"topic {point.topic}: the brokers of {point.connection} do not answer")
        return
    connection, before = kafka_of(connections[point.connection]), len(readiness.of(Weight.AWAY))
    with (
        readiness.asking(f"topic {point.topic}", f"connection {point.connection}"),
        TopicLog(connection, point.topic, patience_seconds=_PATIENCE_SECONDS) as log,
    ):
        log.describe()
        log.stable_ends()
        if missing_rights(connection, point.topic, [READ]):
            readiness.note(_no_right_on_topic(point, "Read"))
        if _is_written(pipeline, point) and missing_rights(connection, point.topic, [WRITE]):
            readiness.note(_no_right_on_topic(point, "Write"), Weight.REPAIRS)
        for identity in _identities(pipeline, point):
            for missing in missing_to_write(connection, identity):
                readiness.note(_no_right_to_replay(point, missing), Weight.REPAIRS)
        for hop in pipeline.hops_from(point.name):
            _look_at_group(readiness, hop, point, log)
    if len(readiness.of(Weight.AWAY)) > before:
        silent.add(point.connection)


def _no_right_on_topic(point: TopicPoint, right: str) -> Problem:
    remedy = (
        f"Grant it: kafka-acls --add --allow-principal User:NAME --operation {right} --topic {point.topic} "
        "(docs/rights.md)"
    )
    found = f"connection {point.connection} has no right to {right} topic {point.topic}"
    return Problem(file=_FILE, path=f"points.{point.name}.topic", found=found, remedy=remedy)


def _no_right_to_replay(point: TopicPoint, missing: MissingRight) -> Problem:
    found = f"connection {point.connection} has no right to {missing.right}; repairs write in transactions"
    remedy = f"Run as an administrator: {missing.command} (docs/rights.md)"
    return Problem(file=_FILE, path=f"connection {point.connection}", found=found, remedy=remedy)


def _identities(pipeline: Pipeline, point: TopicPoint) -> Iterator[str]:
    """Yield the transactional ids by which remedies, and what is published, write to a topic: of a plan one that is
    never there."""
    if point.name in _repaired_topics(pipeline):
        yield replay_identity(f"{pipeline.name}-0", point.name)
    for publish in pipeline.publish:
        if publish.topic == point.name:
            yield publish_identity(pipeline.name, publish.point, point.topic)


def _is_written(pipeline: Pipeline, point: TopicPoint) -> bool:
    """Return whether a remedy or what is published sends records to a topic."""
    return point.name in {*_repaired_topics(pipeline), *(publish.topic for publish in pipeline.publish)}


def _repaired_topics(pipeline: Pipeline) -> Iterator[str]:
    for hop in pipeline.hops:
        remedies = _remedies(hop)
        if Remedy.REDELIVER in remedies:
            yield hop.redeliver_to or hop.source
        if Remedy.PRODUCE in remedies:
            yield hop.target
        if hop.reverse is not None:
            yield hop.reverse.to


def _remedies(hop: Hop) -> set[Remedy]:
    return {getattr(hop.remedies, item.name) for item in fields(hop.remedies)}


def _look_at_group(readiness: Readiness, hop: Hop, point: TopicPoint, log: TopicLog) -> None:
    """Ask where the group of a hop stands. One that has committed nothing may not have begun: that is no mistake."""
    if hop.consumer_group is None:
        return
    group, place = hop.consumer_group, f"hops {hop.name}.consumer_group"
    with readiness.asking(f"group {group}", place, "Grant it: kafka-acls --add … --operation Describe --group NAME"):
        if all(offset is None for offset in log.committed(group).values()):
            text = f"group {group} has committed no offset in topic {point.topic}"
            remedy = "Correct its name; where it has not begun, or keeps its offsets elsewhere, nothing has to be done"
            readiness.note(Problem(file=_FILE, path=place, found=text, remedy=remedy), Weight.ADVICE)


def _look_at_schemas(readiness: Readiness, point: TopicPoint, connections: Mapping[str, Connection]) -> None:
    """Ask the registries of a topic's values and keys for the newest schema. A subject may have another name, by which
    each record names its schema: then only the answer counts."""
    described = ((point.schema, "value"), (point.key_schema, "key"))
    for schema, part in ((schema, part) for schema, part in described if schema is not None):
        registry = connections.get(schema.registry or "")
        if isinstance(registry, RegistryConnection):
            subject = schema.subject or f"{point.topic}-{part}"
            with readiness.asking(f"registry {registry.id}", f"points.{point.name}"):
                _ask_registry(readiness, registry, subject, f"points.{point.name}.schema")


def _ask_registry(readiness: Readiness, registry: RegistryConnection, subject: str, place: str) -> None:
    try:
        Registry(registry).newest(subject)
    except SchemaNotFoundError:
        text = f"the registry of {registry.id} has no subject {subject}"
        remedy = "Write the subject of its values as `subject:`; where none is registered yet nothing has to be done"
        readiness.note(Problem(file=_FILE, path=place, found=text, remedy=remedy), Weight.ADVICE)


# Tables


def _look_at_tables(
    readiness: Readiness,
    pipeline: Pipeline,
    connections: Mapping[str, Connection],
    changed: Mapping[str, Problem] = MappingProxyType({}),
) -> None:
    """Ask for tables, columns and their types, for rights, and for indexes; not for those that are known to have
    `changed`. What several tables have in common is asked once all of them answer."""
    every = [point for point in pipeline.ordered_points() if can_look_up(point)]
    points = [point for point in every if point.name not in changed]
    known = {point.connection for point in points} & set(connections)
    before = len(readiness.mistakes)
    for name in sorted(known):
        of_connection = [point for point in points if point.connection == name]
        _look_at_database(readiness, pipeline, name, of_connection, connections[name])
    are_all_there = not changed and known == {point.connection for point in points}
    if are_all_there and not any(mistake.weight is Weight.AWAY for mistake in readiness.mistakes[before:]):
        with readiness.asking("columns of tables", _FILE):
            for problem in problems_of_tables(pipeline, connections):
                readiness.note(problem)


def _look_at_database(
    readiness: Readiness, pipeline: Pipeline, name: str, points: list[TablePoint], connection: Connection
) -> None:
    """Ask for the tables that one connection leads to."""
    tables = tables_of(connection)
    present: list[TablePoint] = []  # none where the database does not answer
    with readiness.asking(f"tables of {name}", f"connection {name}"):
        _, problems = tables.describe_columns([table_shape(pipeline, point) for point in points])
        for problem in problems:
            readiness.note(problem)
        absent = {problem.path.split(".")[1] for problem in problems if problem.path.startswith("points.")}
        with tables.session("asking for rights") as session:
            present = [point for point in points if point.name not in absent and session.column_types(point)]
            for point in present:
                named = sorted(point.named_columns)
                if not session.may_read(point, named):
                    readiness.note(_unreadable(point))
                for statement in session.missing_to_write(point, _acts(pipeline, point)):
                    readiness.note(_unwritable(point, statement), Weight.REPAIRS)
    for point in present:
        with (
            readiness.asking(f"indexes of {point.table}", f"connection {name}"),
            tables.hold_view(table_shape(pipeline, point)) as view,
        ):
            if view.size_bytes > BYTES_WITHOUT_INDEX:
                _note_indexes(readiness, point, has_time=view.has_time_index, has_key=view.has_key_index)


def _acts(pipeline: Pipeline, point: TablePoint) -> frozenset[str]:
    remedies = {remedy for hop in pipeline.hops_into(point.name) for remedy in _remedies(hop)}
    return frozenset(act for remedy, acts in _ACTS.items() if remedy in remedies for act in acts)


def _unreadable(point: TablePoint) -> Problem:
    found = f"the user of connection {point.connection} may not read {point.table}"
    remedy = f"Run as its owner: grant select on {point.table} to that user (docs/rights.md)"
    return Problem(file=_FILE, path=f"points.{point.name}.table", found=found, remedy=remedy)


def _unwritable(point: TablePoint, statement: str) -> Problem:
    found = f"the user of connection {point.connection} may not write what repairs of {point.table} write"
    remedy = f"Run as its owner: {statement}; or write `report` as the remedies of the hops that lead to it"
    return Problem(file=_FILE, path=f"points.{point.name}.table", found=found, remedy=remedy)


def _note_indexes(readiness: Readiness, point: TablePoint, *, has_time: bool, has_key: bool) -> None:
    columns = ", ".join(point.key_places)
    for is_there, what, index in (
        (has_time or point.time is None, "a slice of time", point.column_place(point.time or "")),
        (has_key, "the rows of a key", columns),
    ):
        if not is_there:
            text = f"no index of {point.table} helps to find {what}: each window reads all of the table"
            remedy = f"create index concurrently on {point.table} ({index})"
            problem = Problem(file=_FILE, path=f"points.{point.name}.table", found=text, remedy=remedy)
            readiness.note(problem, Weight.ADVICE)
