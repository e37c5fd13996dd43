"""Test that `--json` has the promised shape: a change of it changes the version and `report_schema.json`."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from makewhole.audit.report import VERSION, AuditReport
from makewhole.model.points import IN_DOCUMENT
from tests.unit.audit import samples

pytestmark = pytest.mark.unit

_STORED = Path(__file__).with_name("report_schema.json")


def shape(kind: Any) -> Any:
    """Return a type as JSON: dataclasses by field, lists by their element, mappings by their value. What is written if
    there is any is nothing that an audit has."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: shape(hints[field.name]) for field in fields(kind) if IN_DOCUMENT not in field.metadata}
    if get_origin(kind) is tuple:
        arguments = get_args(kind)
        return [shape(arguments[0])] if arguments[-1] is Ellipsis else [shape(argument) for argument in arguments]
    if get_origin(kind) is Mapping:
        return {"*": shape(get_args(kind)[1])}
    return kind.__name__ if isinstance(kind, type) else str(kind)


def test_the_shape_is_the_one_that_was_promised() -> None:
    stored = json.loads(_STORED.read_text())
    assert stored["version"] == VERSION
    assert shape(AuditReport) == stored["report"]


def test_a_report_is_json_and_says_its_version() -> None:
    document = json.loads(json.dumps(samples.report().to_json()))
    assert document["version"] == VERSION
    assert set(document["offsets"]) == set(shape(AuditReport)["offsets"])
    assert set(document) == {field.name for field in fields(AuditReport)}
