"""Make the record of a ledger's row whose columns stand at the places where its topic is read for them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from makewhole.config.places.record_places import ColumnPath, column_paths, is_placed, other_places
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.record_paths import written_path
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.rows import LedgerRecord


def placed_record(pipeline: Pipeline, hop: Hop, record: LedgerRecord) -> LedgerRecord:
    """Return a ledger's row as the record that a hop produces: a whole row with its columns at their places.

    Raises:
        RefusedError: two columns would stand at one place.
    """
    source, target = pipeline.table(hop.source), pipeline.topic(hop.target)
    if record.value is None or not is_placed(source, target):
        return record
    fields = msgspec.json.decode(record.value, type=dict[str, msgspec.Raw])
    paths = column_paths(pipeline, source, target)
    elsewhere = {name for name, _ in [*paths, *other_places(pipeline, target)]}
    own = [(name, (source.column_place(name) if name.startswith('"') else name,)) for name in fields]
    all_paths = [*paths, *((name, path) for name, path in own if name not in elsewhere)]
    return replace(record, value=msgspec.json.encode(_tree(source, fields, all_paths)))


def _tree(source: TablePoint, fields: Mapping[str, msgspec.Raw], paths: Iterable[ColumnPath]) -> dict[str, Any]:
    """Return the fields by their paths."""
    tree: dict[str, Any] = {}
    for name, path in paths:
        if name not in fields:
            continue
        node: Any = tree
        for step in path[:-1]:
            node = node.setdefault(step, {}) if isinstance(node, dict) else node
        if not isinstance(node, dict) or path[-1] in node:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT,
                f"the record of a row of {source.table} cannot have {name} at ${written_path(path)}, where another of "
                f"its columns stands; name a column that holds the whole value under `payload` at points.{source.name}",
            )
        node[path[-1]] = fields[name]
    return tree
