"""Check how a pipeline file says which keys of a store were deleted on purpose, and what to do about vanished ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.gate import Gate
from makewhole.model.hops import Remedy
from makewhole.model.points import Erased, TablePoint
from makewhole.window.configuration import configuration_document

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
    ("said", "erased", "description"),
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
def test_a_store_names_a_table_or_a_column(
    write: Callable[..., Path], said: str, erased: Erased, description: str
) -> None:
    store = load_pipeline(write(FILE.replace("ERASED", f", erased: {said}"))).points["store"]

    assert isinstance(store, TablePoint) and store.erased == erased
    assert erased.description == description


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
            "points.store.erased (line 6): the key of log is in the value ($.region, $.id), which a tombstone does not "
            "have. Write 'key: kafka.key' (or 'header:NAME') at points.log, if its records have the key there. "
            f"{EXAMPLE}",
        ),
    ],
)
def test_anything_else_is_refused_with_what_to_write(write: Callable[..., Path], said: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(FILE.replace("ERASED", f", erased: {said}")))
    (actual,) = caught.value.problems
    assert f"{actual.path}: {actual.found}. {actual.remedy}" == problem


IN_HEADERS = FILE.replace('"$.region", "$.id"', '"header:region", kafka.key').replace("ERASED", ", erased: tombstones")


def test_a_store_has_its_erasures_named_by_the_tombstones_of_the_topics_from_which_hops_lead_into_it(
    write: Callable[..., Path],
) -> None:
    pipeline = load_pipeline(write(IN_HEADERS))
    store = pipeline.points["store"]

    assert isinstance(store, TablePoint) and store.erased == Erased(topics=("log",))
    assert store.erased.description == "a tombstone deletes this key"
    assert [pipeline.has_erasures(point) for point in ("outbox", "log", "store")] == [False, True, False]


@pytest.mark.parametrize(
    ("hops", "message"),
    [
        (
            "[{from: outbox, to: log, semantics: upsert}, {from: log, to: store, semantics: upsert}]",
            "'tombstones' is not a place where erased keys are named. Under 'semantics: upsert' a tombstone deletes "
            f"its key already: take the line out. {EXAMPLE}",
        ),
        (
            "[{from: outbox, to: log}, {from: outbox, to: store}]",
            f"no hop leads from a topic into this store, and a table has no tombstones. {EXAMPLE}",
        ),
    ],
)
def test_tombstones_that_say_nothing_of_a_store_are_refused(
    write: Callable[..., Path], hops: str, message: str
) -> None:
    text = IN_HEADERS.split("hops:")[0] + f"hops: {hops}\n"
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(text))
    (problem,) = caught.value.problems
    assert f"{problem.path}: {problem.found}. {problem.remedy}" == f"points.store.erased (line 6): {message}"


def test_tombstones_name_no_elements(write: Callable[..., Path]) -> None:
    text = FILE.replace("ERASED", ", erased: tombstones").replace('"$.region", "$.id"', '"$.id", "$.lines[*].no"')
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(text.replace("kind: topic", 'explode: "$.lines[*]", kind: topic')))
    assert [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in caught.value.problems] == [
        "points.store.erased (line 6): the events of log are elements of its records, and a tombstone has none: it "
        f"names no key. {EXAMPLE}"
    ]


def test_what_decides_a_verdict_has_tombstones_only_where_the_file_has_them(write: Callable[..., Path]) -> None:
    plain, by_table, by_tombstones = (
        configuration_document(load_pipeline(write(text)))["points"]["store"]["erased"]
        for text in (
            FILE.replace("ERASED", ""),
            FILE.replace("ERASED", ", erased: {table: erasures}"),
            IN_HEADERS,
        )
    )

    assert plain is None
    assert by_table == {"table": "erasures", "key": ["region", "id"], "column": None}
    assert by_tombstones == {"table": None, "key": [], "column": None, "topics": ["log"]}


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
