"""Ask of an item that writes a row what every format of datasets asks."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from makewhole.compute.versions import version_number
from makewhole.datasets.key_rows import DescribedRow
from makewhole.datasets.row_frames import is_of_topics
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.value_texts import compared_texts
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.guards import OTHER_KEY
from makewhole.tables.items import UpsertRow, not_as_expected

_OTHER_TOPIC = Refusal(
    RefusalCode.UNFIT,
    "the row would not say that it is of a topic which leads into this dataset, and would be none of its rows",
)


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


def filled_column(point: TablePoint) -> str | None:
    """Return the column of a new row that gets the name of its topic; None: the rows do not say it, or those that come
    from no topic are the point's, too."""
    return point.dataset.topic if point.dataset is not None and point.dataset.of_topics else None


def own_topic(point: TablePoint, item: UpsertRow) -> dict[str, str]:
    """Return the name of the topic by its column where a new row gets it."""
    name = filled_column(point)
    if item.before or name is None or name in item.columns or item.topic is None:
        return {}
    return {name: item.topic}


def require_as_expected(point: TablePoint, item: UpsertRow, row: pa.Table) -> None:
    """Check that one row, as it would be written, has its own key, is of the point's topics, and holds what the item
    means.

    Raises:
        RefusedError: it does not.
    """
    if key_texts(row, point)[0] != item.key:
        raise ActionRefusedError(OTHER_KEY)
    is_own = is_of_topics(row, point)
    if is_own is not None and not is_own[0]:
        raise ActionRefusedError(_OTHER_TOPIC)
    texts = compared_texts(row, dict(item.compared))
    differing = [name for name, _, text in item.expected if texts[name] != text]
    if differing:
        raise ActionRefusedError(not_as_expected(differing))
