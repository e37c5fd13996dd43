"""Check how a pipeline file says which keys of a store were deleted on purpose, and what to do about vanished ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Erased, Gate, Remedy, TablePoint

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: shop
points:
  outbox: {kind: ledger, connection: db, table: outbox, key: [region, id], time: at}
  log: {kind: topic, connection: k, topic: log, key: ["$.region", "$.id"]}
  store: {kind: store, connection: db, table: store, key: [region, id]ERASED}
hops: [{from: outbox, to: log}, {from: log, to: store}]
"""
EXAMPLE = "Write 'erased: {table: privacy.erasures, key: flight_id}' or 'erased: {column: deleted_at}'"


@pytest.mark.parametrize(
    ("said", "erased", "told_by"),
    [
        (
            "{table: privacy.erasures, key: [area, number]}",
            Erased(table="privacy.erasures", key=("area", "number")),
            "privacy.erasures names this key",
        ),
        ("{table: erasures}", Erased(table="erasures", key=("region", "id")), "erasures names this key"),
        ("{column: deleted_at}", Erased(column="deleted_at"), "its row has a value in deleted_at"),
    ],
)
def test_a_store_names_a_table_or_a_column(write: Callable[..., Path], said: str, erased: Erased, told_by: str) -> None:
    store = load_pipeline(write(FILE.replace("ERASED", f", erased: {said}"))).points["store"]

    assert isinstance(store, TablePoint) and store.erased == erased
    assert erased.told_by == told_by


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{}", f"points.store.erased (line 6): names neither a table nor a column. {EXAMPLE}"),
        (
            "{table: a, column: b}",
            f"points.store.erased (line 6): names both a table and a column. {EXAMPLE}",
        ),
        (
            "{table: a, key: one}",
            "points.store.erased.key (line 6): has 1 parts, and the key of the store 2. Name the columns of the table "
            "that hold the parts of the store's key, in the same order",
        ),
        (
            "{column: a, key: one}",
            "points.store.erased.key (line 6): goes with 'table'. Take the line out: the rows of the store have its "
            "own key",
        ),
        (
            "tombstones",
            "points.store.erased (line 6): 'tombstones' is not a place where erased keys are named. Under 'semantics: "
            f"upsert' a tombstone deletes its key already: take the line out. {EXAMPLE}",
        ),
    ],
)
def test_anything_else_is_refused_with_what_to_write(write: Callable[..., Path], said: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(FILE.replace("ERASED", f", erased: {said}")))
    (found,) = caught.value.problems
    assert f"{found.path}: {found.found}. {found.remedy}" == problem


def test_a_ledger_erases_nothing(write: Callable[..., Path]) -> None:
    with pytest.raises(ConfigurationError, match=r"points.outbox.erased \(line 4\): is not a key here"):
        load_pipeline(write(FILE.replace("time: at", "time: at, erased: {column: gone}").replace("ERASED", "")))


def test_what_has_vanished_is_reported_unless_the_file_asks_for_more(write: Callable[..., Path]) -> None:
    text = FILE.replace("ERASED", "")
    assert [hop.remedies.vanished for hop in load_pipeline(write(text)).hops] == [Remedy.REPORT, Remedy.REPORT]
    asked = load_pipeline(
        write(text + "compensation: {vanished: upsert}\ngate: {tolerance: {vanished: 3, conflict: 1}}\n")
    )
    assert [hop.remedies.vanished for hop in asked.hops] == [Remedy.REPORT, Remedy.UPSERT]
    assert asked.gate == Gate(vanished=3, conflict=1)
