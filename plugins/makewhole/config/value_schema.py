"""Read what a topic point says of its values and record keys: their format, and what describes it."""

import base64
import json
from pathlib import Path

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.points import VALUE_FORMATS, WITH_SCHEMA, ValueSchema

FORMAT_KEYS = ("value", "registry", "schema", "message")
_ONE = {"values": "value", "record keys": "key"}
_MOST_BYTES = 4 * 2**20


def read_value(section: Section) -> tuple[str, ValueSchema | None]:
    """Return the format of a topic's values, and their schema; what is wrong is noted."""
    place = section.get("value")
    named = place.text(values.value_format) if place else None
    form = named or next(iter(VALUE_FORMATS))
    return form, read_schema(section, form, "values")


def read_schema(section: Section, form: str, what: str) -> ValueSchema | None:
    """Return what describes values, or record keys (`what`), of a format; what is wrong is noted."""
    registry, schema, message = (section.get(key) for key in FORMAT_KEYS[1:])
    if form not in WITH_SCHEMA:
        for other in (registry, schema, message):
            if other is not None:
                other.complain(f"says what describes {what}, and {form} needs no description", "Take the line out")
        return None
    if message is not None and form != "protobuf":
        message.complain("names a message, and only protobuf has several in a schema", "Take the line out")
    if (registry is None) is (schema is None):
        (schema or section.absent("registry")).complain(
            f"is there beside a registry, for {form}" if schema else f"is not there, and no schema, for {form}",
            f"Write `registry: {{connection: ID}}` where each {_ONE[what]} begins with the number of its schema, "
            "or `schema: FILE` where none does",
        )
        return None
    of_message = (message.text(str) if message else None) or ""
    if registry is not None:
        return _of_registry(registry, of_message)
    assert schema is not None
    text = _of_file(schema, form)
    return None if text is None else ValueSchema(text=text, message=of_message)


def _of_registry(place: YamlPlace, message: str) -> ValueSchema | None:
    section = place.section()
    if section is None:
        return None
    section.only("connection", "subject")
    named = section.need("connection", "Name the connection to the schema registry")
    connection = named.text(values.connection_id) if named else None
    subject = section.get("subject")
    name = (subject.text(str) if subject else None) or ""
    return None if connection is None else ValueSchema(registry=connection, subject=name, message=message)


def _of_file(place: YamlPlace, form: str) -> str | None:
    """Return the text of a schema file; of a descriptor set its base64."""
    name = place.text(str)
    if name is None:
        return None
    path = Path(place.problems.file).parent / name
    try:
        content = path.read_bytes()
    except OSError as error:
        place.complain(f"names {name}, which cannot be read ({error.strerror})", "Name a file beside the pipeline file")
        return None
    if len(content) > _MOST_BYTES:
        place.complain(f"names {name}, which has more than {_MOST_BYTES} bytes", "Name a file with one schema")
        return None
    if form == "protobuf":
        return base64.b64encode(content).decode()
    try:
        json.loads(content)
    except ValueError:
        place.complain(f"names {name}, which is not JSON", "Name a file with an Avro schema (`.avsc`)")
        return None
    return content.decode()
