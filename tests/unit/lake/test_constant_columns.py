"""Test that columns which hold one value stand beside the rows of a file, and come back as they were."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makewhole.compute.frames import Schema
from makewhole.compute.indexed_keys.stored_runs import STORED
from makewhole.lake.constant_columns import without_constants
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

TYPES: Schema = {
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "number": pl.Int16,
    "text": pl.String,
    "flag": pl.Boolean,
    "moment": pl.Datetime("us", "UTC"),
    "exact": pl.Decimal(38, 9),
    "names": pl.List(pl.String),
    "hops": pl.List(pl.Struct({"compared": pl.UInt64})),
    "ratio": pl.Float64,
}
VALUES = {
    "number": st.sampled_from([None, 0, -1]),
    "text": st.sampled_from([None, "", "é\n"]),
    "flag": st.sampled_from([None, True, False]),
    "moment": st.sampled_from([None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    "exact": st.sampled_from([None, Decimal(0), Decimal("1.5")]),
    "names": st.sampled_from([None, [], ["a"]]),
    "hops": st.sampled_from([None, [], [{"compared": 1}]]),
    "ratio": st.sampled_from([None, 0.0, -0.0, float("nan")]),
}
ROWS = st.lists(st.fixed_dictionaries(VALUES), max_size=5)
NOTHING: dict[str, object] = dict.fromkeys(VALUES)


def frame_of(rows: list[dict[str, object]]) -> pl.DataFrame:
    numbered = [{"key_hi": at, "key_lo": 7, **row} for at, row in enumerate(rows)]
    return pl.DataFrame(numbered, schema=TYPES, orient="row")


@given(rows=ROWS)
@example(rows=[])
@example(rows=[NOTHING])
@example(rows=[{**NOTHING, "ratio": 0.0}, {**NOTHING, "ratio": -0.0}])
def test_rows_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    storage = Storage(root=str(tmp_path_factory.mktemp("storage")))
    frame = frame_of(rows)

    with storage.sorted_parquet("p/index") as file:
        file.append_all(frame)

    read = storage.sorted_rows(file.path)
    assert read.between(0, None).equals(frame)
    assert read.between(0, None).schema == frame.schema
    assert read.between(2, None).equals(frame[2:])
    assert str(read.between(0, None)["ratio"].to_list()) == str(frame["ratio"].to_list())


def test_the_key_and_what_differs_stay_in_the_rows() -> None:
    rows: list[dict[str, object]] = [
        {**NOTHING, "number": 5, "text": "a", "names": []},
        {**NOTHING, "number": 5, "text": "b", "names": []},
    ]

    content = without_constants(frame_of(rows))

    assert content.rows.columns == ["key_hi", "key_lo", "text"]
    assert without_constants(frame_of([])).metadata == {}


def test_rows_of_several_parts_keep_all_their_columns(tmp_path: Path) -> None:
    """A column that holds one value in one part may hold others in the next."""
    storage = Storage(root=str(tmp_path))
    first, other = (frame_of([{**NOTHING, "number": number}]) for number in (1, 2))
    other = other.with_columns(pl.lit(1, dtype=pl.UInt64).alias("key_hi"))

    with storage.sorted_parquet("p/index") as file:
        file.append(first)
        file.append(other)

    assert storage.sorted_rows(file.path).between(0, None).equals(pl.concat([first, other]))


@pytest.mark.parametrize("moment", [None, datetime(1970, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("wanted", [[True, False, True], [False, False, True], [False] * 3])
def test_every_reader_has_the_columns_that_hold_one_value(
    tmp_path: Path, moment: datetime | None, wanted: list[bool]
) -> None:
    storage, frame = Storage(root=str(tmp_path)), frame_of([{**NOTHING, "moment": moment, "number": 5}] * 3)
    with storage.sorted_parquet("p/index") as file:
        file.append_all(frame)

    rows = storage.read_rows([file.path], np.array(wanted))
    assert rows is not None
    assert rows.equals(frame.filter(pl.Series(wanted)))
    assert storage.may_be_before([file.path], "moment", datetime(2026, 1, 1, tzinfo=UTC))
    [part] = storage.parquet_batches([file.path], ["moment", "number"])
    assert part.equals(frame.select("moment", "number"))
    some = storage.read_parquet([file.path], ["number", "text", "nothing"])
    assert some is not None
    assert some.equals(frame.select("number", "text"))


def test_a_run_of_a_window_has_few_columns_of_its_own() -> None:
    run = pl.DataFrame({"key_hi": [1, 2], "key_lo": [1, 2], "window": [3, 3]}, schema_overrides=STORED)
    run = run.with_columns(
        pl.lit(None, dtype=kind).alias(name) for name, kind in STORED.items() if name not in run.columns
    )

    assert without_constants(run.select(*STORED)).rows.columns == ["key_hi", "key_lo"]
