"""Describe pipeline files as a JSON Schema, by which editors complete and check them while they are written.

`python -m makewhole.config.json_schema` prints it; docs/pipeline.schema.json is that. It is never stricter than
`makewhole check`, and knows nothing of what one line has to do with another.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from makewhole.config.datasets import COMMITTED, OrphanWord
from makewhole.config.hops.exploded_points import REMOVED, RemovedElements
from makewhole.config.hops.grouped import GROUP
from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.self_check.read_self_check import SELF_CHECK
from makewhole.config.self_check.self_check_schema import self_check_schema
from makewhole.config.value_schema import FORMAT_KEYS
from makewhole.config.values import PRESETS, TYPES
from makewhole.model.delivery.claims import Delivery
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.people.notices import Waits
from makewhole.model.places.dataset_place import FORMATS
from makewhole.model.places.sink_progress import OffsetMeaning
from makewhole.model.points import RECORD_KEYS, VALUE_FORMATS, KeyType, Partitioner
from makewhole.model.retention import Kept
from makewhole.model.time_limits import TimeLimits
from makewhole.model.value_types import UNITS
from makewhole.model.verdict import GAPS, Duplicates

JsonSchema = dict[str, Any]
EDITOR_LINE = "# yaml-language-server: $schema="
"""The comment that names the schema of a file to editors, before the schema's place."""

_NAME = "^[a-z][a-z0-9_]*$"
_COLUMN = "^[A-Za-z_][A-Za-z0-9_]{0,62}$"
_CONNECTION = "^[A-Za-z][A-Za-z0-9_.-]*$"
_TOPIC = "^[A-Za-z0-9._-]{1,249}$"
_GROUP = "^[!-~]{1,255}$"
_DURATION = "^[0-9]{1,6}[smhd]$"
_TYPE = rf"^({'|'.join(TYPES)}|timestamp\(\s*[0-6]\s*\)|decimal\(\s*[0-9]{{1,2}}\s*,\s*[0-9]{{1,2}}\s*\))$"
_KEPT = {
    Kept.ARCHIVES: "How long records are kept as they were in the log; for ever without this line",
    Kept.ATTEMPTS: "How long files of attempts that died are kept; for ever without this line",
    Kept.FINDINGS: "How long keys and evidence of findings are kept; for ever without this line",
    Kept.QUARANTINE: "How long rows that plans moved aside are kept; for ever without this line",
    Kept.EFFECTS: "How long plans can be undone; for ever without this line",
}
_YES_AND_NO = ("yes", "no", "on", "off", "Yes", "No", "On", "Off", "YES", "NO", "ON", "OFF")


def pipeline_schema() -> JsonSchema:
    """Return the schema of pipeline files (draft 2020-12)."""
    points = {"ledger": _ledger(), "topic": _topic(), "store": _store(), "dataset": _dataset()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A pipeline of makewhole",
        **_object(
            {
                "version": {"const": 2, "description": "Version of the form of this file"},
                "pipeline": _text("Name of the pipeline, as commands and DAGs have it", _NAME),
                "description": _text("For people"),
                "schedule": _schedule(),
                "start": _text("Where judging begins: earliest, latest, or a time such as 2026-01-31T00:00:00Z"),
                "until": _text("Time at which the schedule ends"),
                "settle": _duration("How long a loader may lag before absence counts; 5m without this line"),
                "pending": _object({"max_age": _duration("In flight for longer than this is missing")}),
                "late": _duration("How far back rows may still appear; 1d without this line"),
                "history": _duration("How far back keys are known; for ever without this line"),
                "keep": _object({kind.value: _duration(_KEPT[kind]) for kind in Kept}),
                "reach": {"const": "log", "description": "Accepts that the log alone is proven"},
                "compare": _mapping("Columns that are compared, with their types", _type(), _COLUMN),
                "mask": _words(_text(pattern=_COLUMN), "Columns whose values are shown and kept as digests alone"),
                "points": {
                    **_mapping("The places to compare, by name", {"oneOf": [*points.values()]}, _NAME),
                    "minProperties": 1,
                },
                "hops": {"type": "array", "items": _hop(), "description": "Which point leads to which"},
                "gate": _gate(),
                "compensation": _compensation(),
                "retry_for": _duration("How long a step that meets a transient error is tried again; 6h without it"),
                "time_limits": _object({step.name: _duration("Longest try of it") for step in fields(TimeLimits)}),
                "notify": _notify(),
                "access": _access(),
                SELF_CHECK: self_check_schema(),
            },
            needed=("version", "pipeline"),
        ),
        "anyOf": [{"required": ["points"]}, {"required": [SELF_CHECK]}],
    }


# Points


def _ledger() -> JsonSchema:
    own: JsonSchema = {
        "payload": _text("Column with the value of the record"),
        "record_key": _text("Column with the key of the record"),
        "headers": _mapping("Headers of the record: a column each, or a text in single quotes", _text()),
        "leave_headers": _words(_text(), "Headers that produced records go without"),
        "leave_fields": _words(_text(), "Fields that may be other than in the topic"),
    }
    return _table("ledger", "What the producer says it sent", own, needed=("time",))


def _store() -> JsonSchema:
    return _table("store", "A table of PostgreSQL downstream", {"erased": _erased()})


def _table(kind: str, description: str, own: JsonSchema, needed: Iterable[str] = ()) -> JsonSchema:
    known = {
        "kind": {"const": kind, "description": description},
        "connection": _connection("Its connection, of the type postgres"),
        "table": _text("Its name, with its schema if it has one: ops.departures"),
        **_of_rows(),
        **own,
    }
    return _object(known, needed=("kind", "connection", "table", "key", *needed))


def _of_rows() -> JsonSchema:
    return {
        "key": _key("Columns that identify a business event"),
        "time": _text("Column with the time at which a row was recorded"),
        "version": _text("Column that orders the versions of a key"),
        "columns": _mapping("Columns that have another name in this file", _text(), _COLUMN),
    }


def _dataset() -> JsonSchema:
    known: JsonSchema = {
        "kind": {"const": "dataset", "description": "A store in a lake"},
        "connection": _connection("Its catalogue (iceberg), or its storage (fs, hdfs, aws)"),
        "format": {"enum": [*FORMATS]},
        "table": _text("Its name in the catalogue, with its namespace: dw.orders"),
        "path": _text("The folder of its files: /dw/orders"),
        "position": {
            "anyOf": [_text(), _object({part: _text() for part in ("topic", "partition", "offset")})],
            "description": "Columns with the position of a row's record",
        },
        "committed": {"enum": [*COMMITTED], "description": "When a file counts"},
        "orphans": {
            "enum": _words_of(OrphanWord),
            "description": "What becomes of rows in files that no snapshot lists",
        },
        "uuid": _text("Which table of the catalogue it is"),
        "erased": _erased(),
        **_of_rows(),
    }
    return _object(known, needed=("kind", "connection", "format"))


def _topic() -> JsonSchema:
    described: JsonSchema = {
        "registry": _object(
            {"connection": _connection("Of the type http"), "subject": _text()}, needed=("connection",)
        ),
        "schema": _text("File with the schema"),
        "message": _text("Which message of a file of Protobuf"),
    }
    assert set(described) == set(FORMAT_KEYS[1:])
    key_format: JsonSchema = {"enum": [*RECORD_KEYS]}
    place = _with_unit()
    known: JsonSchema = {
        "kind": {"const": "topic", "description": "A topic of Kafka"},
        "connection": _connection("Its connection, of the type kafka"),
        "topic": _text("Its name", _TOPIC),
        "key": _key("Places that identify an event: $.field, kafka.key, header:NAME, position, sequence"),
        "value": {"enum": [*VALUE_FORMATS], "description": "Format of its values; json without this line"},
        **described,
        "record_key": {
            "anyOf": [key_format, _object({"format": key_format, **described}, needed=("format",))],
            "description": "Format of Kafka's own keys",
        },
        "version": {**place, "description": "Place that orders the versions of a key"},
        "columns": _mapping("Places of columns that are no fields of their own name", place, _COLUMN),
        "partitioner": {"enum": _words_of(Partitioner), "description": "That of its producers"},
        "duplicates": {"enum": _words_of(Duplicates), "description": "Of a topic that nothing feeds"},
        "explode": _text("Array whose elements are the events: $.lines[*]"),
        "publish": _object({"path": _text(), "topic": _text()}),
    }
    return _object(known, needed=("kind", "connection", "topic"))


def _with_unit() -> JsonSchema:
    counted = _object({"field": _text(), "as": {"enum": [*UNITS]}}, needed=("field", "as"))
    return {"anyOf": [_text(), counted]}


def _key(description: str) -> JsonSchema:
    typed = {**_mapping("", {"enum": _words_of(KeyType)}), "minProperties": 1}
    return {"anyOf": [*_words(_text())["anyOf"], typed], "description": description}


def _erased() -> JsonSchema:
    by_table = _object({"table": _text(), "key": _words(_text())}, needed=("table",))
    by_column = _object({"column": _text()}, needed=("column",))
    return {
        "anyOf": [{"const": "tombstones"}, by_table, by_column],
        "description": "What says which keys were deleted on purpose",
    }


# Hops


def _hop() -> JsonSchema:
    known: JsonSchema = {
        "from": _text("The point that it starts from"),
        "to": _text("The point that it leads to"),
        "consumer_group": _text("Group of what loads the target", _GROUP),
        "control_topic": _text("Control topic of Iceberg's sink", _TOPIC),
        "delivery": {"enum": _words_of(Delivery), "description": "What `makewhole doctor` holds the systems to"},
        "progress": {"anyOf": [{"const": "files"}, _table_of_progress()]},
        "compare": _mapping("Columns that this hop compares, with their types", _type(), _COLUMN),
        "where": _text("Which events of the source the target is to have: cancelled = false and amount > 0"),
        "semantics": {"enum": _words_of(Semantics), "description": "event: each key once. upsert: the latest version"},
        REMOVED: {
            "enum": _words_of(RemovedElements),
            "description": "Under upsert: what is there of an element that a newer record does not have; only kept",
        },
        GROUP: _group(),
        "compensation": _object(_remedies()),
        "redeliver": _object({"to": _text(), "despite": _words(_text("", _GROUP))}, needed=("to",)),
        "redeliver_to": _text("Topic point for redelivered records"),
        "reverse": _object(
            {
                "to": _text(),
                "key": _text(),
                "value": {"type": "object", "minProperties": 1},
                "headers": _mapping("", _text()),
            },
            needed=("to", "value"),
        ),
        "write": _mapping("Columns that a new row gets besides, with their types", _type(), _COLUMN),
        "leave": _words(_text("", _COLUMN), "Columns that are left to the table"),
    }
    return _object(known, needed=("from", "to"))


def _group() -> JsonSchema:
    known = {
        "identity": _text(
            "Column by which a record is known that was sent again; position: each record counts", _COLUMN
        ),
        "counts": _text("Column of the store with the number of records", _COLUMN),
        "sums": _mapping("Columns with sums: bigint or decimal(p,s)", _type(), _COLUMN),
    }
    return _object(known, needed=("identity",)) | {"description": "A row of the store is made of all records of a key"}


def _table_of_progress() -> JsonSchema:
    return _object(
        {
            **{key: _text() for key in ("table", "partition", "offset", "topic", "where")},
            "means": {"enum": _words_of(OffsetMeaning)},
        },
        needed=("table", "partition", "offset"),
    )


def _remedies() -> JsonSchema:
    words = [remedy.value for remedy in Remedy if remedy is not Remedy.RESTORE]
    return {verdict: {"enum": words} for verdict in VERDICTS}


# Policy


def _schedule() -> JsonSchema:
    cron = {"type": "string", "pattern": r"^\s*(\S+\s+){4}\S+\s*$"}
    return {
        "anyOf": [{"enum": [*PRESETS]}, cron],
        "description": "Five cron fields, UTC: each run covers the interval before it",
    }


def _gate() -> JsonSchema:
    tolerable = (*(verdict.value for verdict in GAPS), "undecodable", "pending", "vanished")
    return _object(
        {
            "tolerance": _object({name: _whole() for name in tolerable}),
            "allow_empty": {
                "anyOf": [{"type": "boolean"}, {"enum": [*_YES_AND_NO]}],
                "description": "Lets a window without any event pass",
            },
        }
    )


def _compensation() -> JsonSchema:
    return _object(
        {
            **_remedies(),
            "limits": _object(
                {
                    "actions": _whole(),
                    "share": {"type": "number", "minimum": 0, "maximum": 1},
                    "records_per_second": _whole(1),
                }
            ),
            "approval": _object(
                {
                    "above_actions": _whole(),
                    "by": _words(_text("", _GROUP), "Users, or group:NAME"),
                    "expires": _duration("How long the question waits"),
                    "four_eyes": {"type": "boolean", "description": "Who asked for the run may not answer"},
                }
            ),
        }
    )


def _notify() -> JsonSchema:
    channel = _object(
        {
            "notifier": _text("Class of one of Airflow's notifiers, with its module"),
            "arguments": {"type": "object", "description": "Its arguments, templates over makewhole.text and others"},
            "kinds": _words({"enum": _words_of(Waits)}, "What is sent through it; everything without this line"),
        },
        needed=("notifier", "arguments"),
    )
    return _object(
        {
            "through": _mapping("Ways to people, by name", channel, _NAME),
            "remind": _duration("What still waits is sent again after this time; 1d without this line"),
            "certify_by": _duration("How long after the end of its interval a window is to be certified"),
        },
        needed=("through",),
    )


def _access() -> JsonSchema:
    role: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 64}
    return _object(
        {
            "run": _words(role, "Roles of Airflow that may start and steer runs of this pipeline"),
            "approve": _words(role, "Roles of Airflow that may answer the questions of its runs"),
            "read": _words(role, "Roles of Airflow that may look at its runs"),
        }
    )


# Parts


def _object(properties: Mapping[str, Any], needed: Iterable[str] = ()) -> JsonSchema:
    schema: JsonSchema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    required = [*needed]
    return {**schema, "required": required} if required else schema


def _mapping(description: str, of: JsonSchema, names: str = "") -> JsonSchema:
    schema: JsonSchema = {"type": "object", "additionalProperties": of}
    if names:
        schema["propertyNames"] = {"pattern": names}
    return {**schema, "description": description} if description else schema


def _text(description: str = "", pattern: str = "") -> JsonSchema:
    schema = {"type": "string", "description": description, "pattern": pattern}
    return {key: value for key, value in schema.items() if value}


def _words(of: JsonSchema, description: str = "") -> JsonSchema:
    schema: JsonSchema = {"anyOf": [of, {"type": "array", "items": of, "minItems": 1, "uniqueItems": True}]}
    return {**schema, "description": description} if description else schema


def _whole(least: int = 0) -> JsonSchema:
    return {"type": "integer", "minimum": least}


def _duration(description: str) -> JsonSchema:
    return _text(f"{description} (30s, 5m, 4h, 2d)", _DURATION)


def _connection(description: str) -> JsonSchema:
    return _text(description, _CONNECTION)


def _type() -> JsonSchema:
    return _text("", _TYPE)


def _words_of(kind: Iterable[Any]) -> list[str]:
    return [member.value for member in kind]


def schema_text() -> str:
    """Return the schema as a file has it."""
    return json.dumps(pipeline_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
