"""Ask of an item that writes a row what every format of datasets asks."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from makewhole.compute.versions import version_number
from makewhole.datasets.key_rows import DescribedRow
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.value_texts import compared_texts
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.guards import OTHER_KEY
from makewhole.tables.items import UpsertRow, not_as_expected


def fields_of(item: UpsertRow) -> dict[str, Any]:
    """Return the fields of the value over those of the key, numbers exact.

    Raises:
        RefusedError: the value is no JSON object.
    """
    try:
        fields = json.loads(item.value, parse_float=Decimal)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ActionRefusedError.of(RefusalCode.UNFIT, "the table does not take it: its value is no JSON object")
    return {**dict(zip(item.key_columns, item.parts, strict=True)), **fields}


def is_newer(point: TablePoint, row: DescribedRow, fields: Mapping[str, Any]) -> bool:
    """Return whether a row has a higher version than the fields of a record; what has none decides nothing."""
    if point.version is None:
        return False
    record = version_number(fields.get(point.version))
    return row.version is not None and record is not None and row.version > record


def require_as_expected(point: TablePoint, item: UpsertRow, row: pa.Table) -> None:
    """Check that one row, as it would be written, has its own key, and holds what the item means.

    Raises:
        RefusedError: it does not.
    """
    if key_texts(row, point)[0] != item.key:
        raise ActionRefusedError(OTHER_KEY)
    texts = compared_texts(row, dict(item.compared))
    differing = [name for name, _, text in item.expected if texts[name] != text]
    if differing:
        raise ActionRefusedError(not_as_expected(differing))
