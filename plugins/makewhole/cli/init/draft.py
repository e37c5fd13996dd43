"""Draft a pipeline file from what its places hold: the fields of records, the columns of two tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from makewhole.cli.init.value_formats import GuessedFormat, guess_format
from makewhole.config.json_schema import EDITOR_LINE
from makewhole.kafka.sample import SampledRecord
from makewhole.model.points import WITH_SCHEMA

SCHEMA_FILE = "pipeline.schema.json"
_TYPES = {
    "smallint": "int",
    "integer": "int",
    "bigint": "bigint",
    "real": "double",
    "double precision": "double",
    "boolean": "boolean",
    "date": "date",
    "json": "json",
    "jsonb": "json",
    "text": "string",
    "uuid": "string",
}
_MOMENTS = ("timestamp with time zone", "timestamp without time zone")
_KEY_NAMES = ("id", "key", "uuid")


@dataclass(frozen=True, kw_only=True)
class TableSeen:
    """A table with the types of its columns by name, as its system writes them."""

    connection: str
    table: str
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class TopicSeen:
    """A topic with some of its records, and the groups that read it."""

    connection: str
    topic: str
    records: Sequence[SampledRecord]
    groups: Sequence[str]

    @cached_property
    def format(self) -> GuessedFormat | None:
        """The format of the sampled values; None: it is not known, or there are none."""
        return guess_format([record.value for record in self.records if record.value is not None])

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that all sampled values have; empty: none is known."""
        return () if self.format is None else self.format.fields


def guessed_key(ledger: TableSeen, topic: TopicSeen, store: TableSeen) -> str | None:
    """Return the column that most likely identifies an event: one that all three have, named as keys are; None: they
    have none in common."""
    common = [name for name in ledger.columns if name in store.columns and name in (topic.fields or ledger.columns)]
    named = [name for name in common if name in _KEY_NAMES] + [name for name in common if name.endswith("_id")]
    return next(iter([*named, *common]), None)


def drafted(name: str, key: str, ledger: TableSeen, topic: TopicSeen, store: TableSeen) -> str:
    """Return the text of a pipeline file whose every guess says that it is one. It observes, and writes nothing."""
    return "\n".join(_lines(name, key, ledger, topic, store)) + "\n"


def _lines(name: str, key: str, ledger: TableSeen, topic: TopicSeen, store: TableSeen) -> Iterator[str]:
    yield f"{EDITOR_LINE}{SCHEMA_FILE}"
    yield "# Drafted by `makewhole init` from what the places hold. Check what says `guessed`."
    yield "version: 2"
    yield f"pipeline: {name}"
    yield '# schedule: "0 2 * * *"   # five cron fields, UTC: each run covers the interval before it'
    yield "start: earliest           # where judging begins: earliest, latest, or a time"
    yield "settle: 2m                # guessed: how long a loader may lag before absence counts; longer for batches"
    yield from _compare(key, ledger, topic, store)
    yield "points:"
    yield "  ledger:                 # what the producer says it sent"
    yield from _table(ledger, "ledger", key)
    yield "  topic:"
    yield from _topic(topic, key)
    yield "  store:                  # what downstream has"
    yield from _table(store, "store", key)
    yield "hops:"
    yield "  - {from: ledger, to: topic}"
    yield from _second_hop(topic)
    yield "# compensation:           # nothing is repaired before these lines say so"
    yield "#   missing: redeliver"
    yield "#   duplicate: quarantine"
    yield "#   approval: {above_actions: 0, by: [YOUR_NAME]}"


def _compare(key: str, ledger: TableSeen, topic: TopicSeen, store: TableSeen) -> Iterator[str]:
    """Yield the columns that all places have, with types that all can be read by."""
    fields = topic.fields
    if not fields:
        yield "# compare: {column: type}  # no field of the records is known: name those that all places have"
        return
    moments = {_time(table) for table in (ledger, store)}
    common = [name for name in ledger.columns if name in store.columns and name in fields and name != key]
    types = {name: compare_type(ledger.columns[name], store.columns[name]) for name in common if name not in moments}
    known = {name: kind for name, kind in types.items() if kind is not None}
    if not known:
        yield "# compare: {column: type}  # the places have no column in common but the key"
        return
    yield "compare:                  # guessed: the columns that all places have"
    for name, kind in known.items():
        yield f"  {_quoted(name)}: {_quoted(kind)}"


def compare_type(*types: str) -> str | None:
    """Return the type by which columns of these types of PostgreSQL can be compared; None: there is none that is known
    here."""
    kinds = {_compared_as(name) for name in types}
    if kinds <= {"int", "bigint"}:
        return "bigint" if "bigint" in kinds else "int"
    return kinds.pop() if len(kinds) == 1 else None


def _compared_as(name: str) -> str | None:
    if name in _TYPES:
        return _TYPES[name]
    if name.startswith(("character varying", "character(", "varchar")):
        return "string"
    if name.startswith("timestamp"):
        return "timestamp"
    digits = name.removeprefix("numeric(").removesuffix(")")
    return f"decimal({digits})" if name.startswith("numeric(") and "," in digits and "-" not in digits else None


def _table(table: TableSeen, kind: str, key: str) -> Iterator[str]:
    time = _time(table)
    yield f"    kind: {kind}"
    yield f"    connection: {table.connection}"
    yield f"    table: {_quoted(table.table)}"
    yield f"    key: {_quoted(key)}              # guessed: what identifies a business event"
    if time is not None:
        others = [name for name in _times(table) if name != time]
        also = f"; there are {', '.join(others)}, too" if others else ""
        yield f"    time: {_quoted(time)}             # guessed: when a row was written{also}"
    elif kind == "ledger":
        yield "    time: COLUMN            # no column of the table has a time: name the one that says when a row came"


def _times(table: TableSeen) -> list[str]:
    """Return the columns with moments, those with a time zone first."""
    plain = {name: kind.split("(")[0] + kind.partition(")")[2] for name, kind in table.columns.items()}
    return [name for moment in _MOMENTS for name, kind in plain.items() if kind == moment]


def _time(table: TableSeen) -> str | None:
    return next(iter(_times(table)), None)


def _topic(topic: TopicSeen, key: str) -> Iterator[str]:
    yield "    kind: topic"
    yield f"    connection: {topic.connection}"
    yield f"    topic: {topic.topic}"
    form = topic.format
    if form is None:
        seen = "the topic is empty" if not topic.records else "its values are no JSON objects"
        yield f"    value: json             # guessed, as {seen}: avro, protobuf, connect, debezium, string, bytes"
        yield f"    key: {_quoted('$.' + key)}"
        return
    if form.name in WITH_SCHEMA:
        yield f"    value: {form.name}             # guessed, as values begin with the number of a schema: or protobuf"
        yield "    registry: {connection: registry}  # guessed: an Airflow connection of the type http"
        yield f"    key: {_quoted('$.' + key)}"
        return
    yield f"    value: {form.name}"
    in_value = key in form.fields
    place = f"$.{key}" if in_value else "kafka.key"
    yield f"    key: {_quoted(place)}" + ("" if in_value else f"       # guessed: no field of the value is {key}")


def _second_hop(topic: TopicSeen) -> Iterator[str]:
    if len(topic.groups) == 1:
        group = _quoted(topic.groups[0])
        yield f"  - {{from: topic, to: store, consumer_group: {group}}}  # guessed: the only group there"
        return
    known = f"one of {', '.join(topic.groups)}" if topic.groups else "that of the loader, where it commits to Kafka"
    yield f"  - {{from: topic, to: store}}  # consumer_group: {known}"


def _quoted(text: str) -> str:
    """Return a text as YAML takes it for one."""
    is_plain = text.replace("_", "").replace(".", "").isalnum() and text.isascii() and not text[0].isdigit()
    is_word = text.lower() in ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    return text if is_plain and not is_word else json.dumps(text, ensure_ascii=False)
