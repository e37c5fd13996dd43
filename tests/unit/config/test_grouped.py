"""Check how a pipeline file says that many records become one row, and what it cannot say beside that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.hops.suggested import suggest
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedies, Remedy
from makewhole.model.places.compared_columns import (
    as_compared_on,
    columns_asked_at,
    columns_read_at,
    compared_by_hop,
    is_all_read,
)
from makewhole.model.places.grouping import Grouping
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: totals
TOPcompare: {sku: string}
points:
  lines: {kind: topic, connection: k, topic: lines, key: "$.order"LINES}
  orders: {kind: store, connection: db, table: dw.orders, key: id, time: atORDERS}
  other: {kind: store, connection: db, table: dw.other, key: id, time: at}
  more: {kind: topic, connection: k, topic: more, key: "$.order"}
hops:
  - {from: more, to: other}
  - {from: lines, to: orders, group: GROUPHOP}
"""
GROUP = '{identity: line, counts: lines, sums: {total: "decimal(12,2)"}}'
REMEDY = "Compare the two in pipeline files of their own"


def text(group: str = GROUP, hop: str = "", lines: str = "", orders: str = "", top: str = "") -> str:
    named = FILE.replace("GROUP", group).replace("HOP", hop).replace("LINES", lines)
    return named.replace("ORDERS", orders).replace("TOP", top)


def test_each_end_is_read_for_its_own_columns(write: Callable[..., Path]) -> None:
    """Amounts are read exactly: by the type of their sum they would be rounded."""
    pipeline = load_pipeline(write(text()))
    hop = pipeline.hop("lines→orders")
    assert hop.group == Grouping(identity="line", counts="lines", sums=("total",))
    of_records = {"line": "string", "total": "bigint"}
    of_rows = {"lines": "bigint", "total": "decimal(12,2)"}
    for seen in (pipeline, as_compared_on(pipeline, hop)):
        assert [columns_asked_at(seen, name) for name in ("lines", "orders")] == [of_records, of_rows]
        assert is_all_read(seen, "lines")
        assert is_all_read(seen, "orders")
    assert columns_read_at(pipeline, "other") == {"sku": "string"}
    assert compared_by_hop(pipeline) == {hop.name: {"line": "string", **of_rows}}
    assert hop.remedies == Remedies(**dict.fromkeys(("missing", "duplicate", "mismatched"), Remedy.REPORT))


def test_a_position_is_no_column(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text("{identity: position, counts: n}")))
    assert pipeline.hop("lines→orders").group == Grouping(counts="n")
    assert columns_read_at(pipeline, "lines") == {}


def test_another_group_is_another_reading(write: Callable[..., Path]) -> None:
    first, other = (load_pipeline(write(text(GROUP.replace("line,", name)))) for name in ("line,", "id,"))
    assert reading_sha256(first) != reading_sha256(other)
    assert judging_sha256(first) != judging_sha256(other)
    assert "group" not in configuration_document(first)["hops"][0]


def test_no_remedy_is_suggested_and_none_of_the_file_is_taken(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text(top="compensation: {missing: upsert, duplicate: quarantine}\n")))
    assert pipeline.hop("more→other").remedies.missing is Remedy.UPSERT
    hop = pipeline.hop("lines→orders")
    assert hop.remedies.chosen == {Remedy.REPORT}
    suggestion = suggest(pipeline, hop, "missing")
    assert suggestion.remedy is None
    assert suggestion.does == "a sum is no copy of a record; what loads orders has to add it up again"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"group": "{counts: n}"},
            "hops[1].group.identity (line 11): is missing. Name the column by which a record is known that was sent "
            "again, or 'position'",
        ),
        (
            {"group": "{identity: sequence, counts: n}"},
            "hops[1].group.identity (line 11): 'sequence' numbers what a producer sent, and a record that was sent "
            "again has another number. Name a column of the record; where each record counts, write 'position'. A "
            "column of that name takes another one under 'columns' of the topic",
        ),
        (
            {"group": "{identity: line}"},
            "hops[1].group (line 11): counts nothing and adds nothing up. Name what a row holds of its records, for "
            "example 'group: {identity: line_id, counts: lines, sums: {total: \"decimal(12,2)\"}}'",
        ),
        (
            {"group": "{identity: line, counts: line}"},
            "hops[1].group (line 11): names line twice. Give the identity, the count and each sum a name of its own",
        ),
        (
            {"group": "{identity: line, sums: {total: double}}"},
            "hops[1].group.sums.total (line 11): a double cannot be added up exactly. Declare the sum as bigint or as "
            "decimal(p,s)",
        ),
        (
            {"group": '{identity: line, sums: {total: "decimal(28,2)"}}'},
            "hops[1].group.sums.total (line 11): 'decimal(28,2)' has more digits than sums are added with. Write "
            "decimal(p,s) with p of 27 at most",
        ),
        (
            {"hop": ", compare: {sku: string}"},
            "hops[1].compare (line 11): 'compare' is about a row that is a copy of a record, and 'group' makes a row "
            "of many. Take the line out; what is compared stands under 'group'",
        ),
        (
            {"hop": ", semantics: upsert"},
            "hops[1] (line 11): 'semantics: upsert' takes the latest record of a key, and 'group' all of them. Take one"
            " of the two out",
        ),
        (
            {"hop": ", compensation: {missing: upsert}"},
            "hops[1].compensation.missing (line 11): 'upsert' is not possible for missing keys from a topic to a store "
            "of which a row is made of many records, and is no copy of one. Allowed: report",
        ),
        (
            {"hop": "}\n  - {from: lines, to: other"},
            "hops[1] (line 11): lines→other reads or writes lines, too, where a record or a row is one event; under "
            f"'group' a key has many records. {REMEDY}",
        ),
        (
            {"hop": "}\n  - {from: more, to: orders"},
            "hops[1] (line 11): more→orders reads or writes orders, too, where a record or a row is one event; under "
            f"'group' a key has many records. {REMEDY}",
        ),
        (
            {"hop": "}\n  - {from: more, to: lines"},
            "hops[1] (line 11): more→lines reads or writes lines, too, where a record or a row is one event; under "
            f"'group' a key has many records. {REMEDY}",
        ),
        (
            {"orders": ", erased: {column: gone}"},
            "points.orders (line 6): has 'erased', which takes a record or a row for one event, and lines→orders makes "
            "a row of many records. Take 'erased' out, or 'group'",
        ),
        (
            {"lines": ", publish: {}"},
            "points.lines (line 5): has 'publish', which takes a record or a row for one event, and lines→orders makes "
            "a row of many records. Take 'publish' out, or 'group'",
        ),
        (
            {"top": "history: 60d\n"},
            "history (line 3): forgets the keys of older windows, and lines→orders adds up all records of a key. Take "
            "the line out, or compare that hop in a pipeline file of its own",
        ),
    ],
)
def test_what_cannot_be_judged_beside_it_is_refused(
    write: Callable[..., Path], changed: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_pipeline(write(text(**changed)))
    assert problem in [str(each).partition(": ")[2] for each in refused.value.problems]


def test_it_leads_from_a_topic_into_a_store(write: Callable[..., Path]) -> None:
    wrong = text(lines="").replace(
        "{kind: store, connection: db, table: dw.orders, key: id, time: at}",
        '{kind: topic, connection: k, topic: sums, key: "$.id"}',
    )
    with pytest.raises(ConfigurationError, match="'group' makes one row of a store of the records of a topic"):
        load_pipeline(write(wrong))
