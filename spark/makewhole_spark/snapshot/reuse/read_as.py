"""Name what decides the files of a snapshot besides the data: two readings alike in this write the same rows."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from makewhole.journal.results.snapshot_manifests import READ_AS
from makewhole.model.connection import registry_of
from makewhole.model.points import Point, has_log
from makewhole.signing.keys import sha256_of
from makewhole.window.configuration import judging_sha256, plain, reading_sha256
from makewhole.window.context import WindowContext
from makewhole_spark.same_code import LIBRARIES_OF_KINDS, code_digest, versions_of
from makewhole_spark.snapshot.value_census import values_sha256


def read_as(context: WindowContext, point: Point, buckets: int) -> dict[str, str]:
    """Return what decides the files of a point, by what it is called in messages, each as a digest."""
    window, pipeline = context.window, context.pipeline
    file = [judging_sha256(pipeline), reading_sha256(pipeline)]
    values = [values_sha256(pipeline, point.name), plain(window.value_types), window.former_filters]
    types = [[kind.value for kind in point.key_layout], *values]
    ranges = [asdict(part) for part in window.ranges.get(point.name, ())] if has_log(point) else []
    parts: Mapping[str, Any] = {
        "version of makewhole or its libraries": [code_digest(), versions_of(LIBRARIES_OF_KINDS)],
        "configuration": file,
        "types of keys or values": types,
        "place": window.places.get(point.name),
        "schema registry": _registries(context, point),
        "number of buckets": buckets,
        "slice": [plain(window.start), plain(window.end), plain(ranges)],
    }
    return {name: sha256_of({"is": part})[:32] for name, part in parts.items()}


def _registries(context: WindowContext, point: Point) -> list[str]:
    """Return where the schemas of a topic come from: the same number means another one elsewhere."""
    schemas = (point.schema, point.key_schema) if has_log(point) else ()
    names = [schema.registry for schema in schemas if schema is not None and schema.registry is not None]
    return [registry_of(context.connections[name]).url for name in names]


def differs_in(manifest: Mapping[str, Any], now: Mapping[str, str]) -> str | None:
    """Return in what a reading differed from one that would be made now; None: in nothing."""
    before = manifest.get(READ_AS)
    if before is None:
        return "how it was read is not known"
    names = [name for name in now if before.get(name) != now[name]]
    return f"it was read with another {names[0]}" if names else None
