"""Test the faults of Iceberg tables over whole windows by position: what is found, with its file or its snapshot."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Summary
from pyiceberg.types import StringType
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.datasets.iceberg import outside as outside_table
from makewhole.datasets.iceberg.files_outside import same_file
from makewhole.datasets.iceberg.write import chunk_commit, commit
from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_positions import without_stamp
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_java import JavaIceberg
from tests.world.iceberg_lake import ORDERS, POSITION, in_order, with_position
from tests.world.orders import orders
from tests.world.pipeline_file import dataset
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(8))
STRING: StringType = StringType()  # type: ignore[no-untyped-call]
POSITIONED = ORDERS.append(pa.field("_kafka_metadata", POSITION))
LOST = ("missing", "lost_after_topic")


def key(offset: int) -> str:
    """Return the key of a position in the only partition."""
    return f'["0","{offset}"]'


def describe(shop: IcebergShop, leave: str = "[stamp]", **more: str) -> None:
    """Describe a warehouse whose rows are known by their positions, and make it, empty; its records are sent."""
    columns = "{stamp: _kafka_metadata.timestamp}"
    warehouse = dataset("lake", TABLE, position="_kafka_metadata", columns=columns, **more)
    for name in ("key", "time"):
        del warehouse[name]
    shop.describe_lake(warehouse=warehouse, topic_key="position", compensation=ALL, hop={"leave": leave})
    shop.lake.make_table(TABLE, POSITIONED)
    shop.send(MADE)


def rows(shop: IcebergShop) -> list[dict[str, Any]]:
    """Return the rows of all records, as the sink writes them."""
    return with_position(MADE, shop.topic)


def newest_file(shop: IcebergShop) -> str:
    """Return the path of the file that was added last."""
    table = shop.lake.table(TABLE)
    entries = table.inspect.entries().to_pylist()
    path: str = max(entries, key=lambda manifest: manifest["sequence_number"])["data_file"]["file_path"]
    return path


def write_file(shop: IcebergShop, name: str, some: Iterable[Mapping[str, Any]], **metadata: str) -> str:
    """Write a data file below the table's location, and commit nothing, as a sink that is killed; return its path."""
    table = shop.lake.table(TABLE)
    schema = table.schema().as_arrow()
    path = f"{table.location()}/data/{name}.parquet"
    content = pa.Table.from_pylist(list(some), schema=schema).replace_schema_metadata(metadata or None)
    local = Path(path.removeprefix("file://"))
    local.parent.mkdir(exist_ok=True)
    pq.write_table(content, local)
    return path


def is_delete(summary: Summary) -> bool:
    """Return whether a snapshot took files out, and added none."""
    return summary.operation.value == "delete"


def outside(shop: IcebergShop, context: WindowContext, offset: int) -> list[dict[str, str]]:
    """Return what the finding of a position says of rows outside the table."""
    paths: list[dict[str, str]] = shop.evidence(context, STORE_HOP, key(offset)).get("outside", [])
    return paths


def explained(shop: IcebergShop, offset: int) -> str:
    """Return what `makewhole explain` says of a position, without what lays it out."""
    result = CliRunner().invoke(app, ["explain", "shop", key(offset)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return "".join(result.stdout.split())


def repair(shop: IcebergShop, context: WindowContext) -> None:
    """Repair a window, certify it, and take the repair back."""
    before = shop.lake.rows(TABLE)
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    positions = [row["_kafka_metadata"]["offset"] for row in shop.lake.rows(TABLE)]
    assert sorted(positions) == list(range(8))
    assert shop.close(context).state is WindowState.CERTIFIED
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(TABLE)) == ({}, before)


def test_rows_that_a_compaction_dropped_are_named_with_their_file_and_its_snapshot(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    first = newest_file(shop)
    shop.lake.append(TABLE, made[5:])
    table = shop.lake.table(TABLE)
    table.overwrite(pa.Table.from_pylist([*made[:2], *made[4:]], schema=table.schema().as_arrow()))
    [took_out] = [
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if snapshot.summary and is_delete(snapshot.summary)
    ]

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(2): LOST, key(3): LOST}
    place = first.partition(f"{table.location()}/")[2]
    assert outside(shop, context, 3) == [
        {"place": f"{place}:3", "reason": "taken_out", "snapshot": str(took_out), "operation": "delete"}
    ]
    assert f"inafilethatsnapshot{took_out}(delete)tookout" in explained(shop, 3)
    repair(shop, context)


@pytest.mark.extended
def test_rows_that_a_compaction_of_another_engine_dropped_are_named(shop: IcebergShop) -> None:
    """Takes long: a JVM is started."""
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    shop.lake.append(TABLE, made[5:])
    path = write_file(shop, "compacted", made[:-1])
    with JavaIceberg(shop.lake) as java:
        took_out = java.replace_files(TABLE, Path(path.removeprefix("file://")), 7)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(7): LOST}
    [row] = outside(shop, context, 7)
    assert (row["reason"], row["snapshot"], row["operation"]) == ("taken_out", str(took_out), "replace")
    assert row["place"].endswith(":2")
    repair(shop, context)


@pytest.mark.extended
def test_rows_that_deletion_vectors_took_away_are_missing_and_named_and_format_3_is_not_repaired(
    shop: IcebergShop,
) -> None:
    """Takes long: a JVM is started."""
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    path = newest_file(shop)
    shop.lake.append(TABLE, made[5:])
    with JavaIceberg(shop.lake) as java:
        java.raise_format(TABLE, 3)
        java.delete_rows(TABLE, path, [1, 4])
    before = shop.lake.rows(TABLE)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(1): LOST, key(4): LOST}
    [row] = outside(shop, context, 4)
    place = path.partition(f"{shop.lake.table(TABLE).location()}/")[2]
    assert (row["reason"], row["place"].partition(" ")[0]) == ("deleted", f"{place}:4")
    plan = shop.planned(context)
    shop.approve(plan)
    with pytest.raises(RefusedError, match=r"is a table of Iceberg's format 3, in which rows have numbers"):
        shop.run(context, plan)
    assert shop.lake.rows(TABLE) == before


def test_a_table_with_very_many_snapshots_is_judged_without_rows_outside(
    shop: IcebergShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(shop)
    made = rows(shop)
    for some in (made[:3], made[3:7]):
        shop.lake.append(TABLE, some)
    write_file(shop, "lost", made[7:])
    monkeypatch.setattr(outside_table, "_MOST_SNAPSHOTS", 1)

    context = shop.judge_and_ask_the_gate()

    assert (shop.found(context, STORE_HOP), outside(shop, context, 7)) == ({key(7): LOST}, [])
    assert "itkeeps2snapshots,andatmost1areread" in explained(shop, 7)


def test_rows_that_a_rollback_took_away_are_named_with_the_snapshot_that_has_them(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:6])
    shop.lake.append(TABLE, made[6:])
    table = shop.lake.table(TABLE)
    before, left = (entry.snapshot_id for entry in table.history())
    table.manage_snapshots().rollback_to_snapshot(before).commit()

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(6): LOST, key(7): LOST}
    [row] = outside(shop, context, 7)
    assert (row["reason"], row["snapshot"], row["operation"]) == ("not_in_history", str(left), "append")
    assert row["place"].endswith(f":1 (snapshot {left})")
    repair(shop, context)


def test_orphans_are_named_by_position_whatever_else_lies_in_the_warehouse(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    write_file(shop, "killed", made[3:6])
    write_file(shop, "lost", made[5:])
    write_file(shop, "another-topic", with_position(MADE, "another"))
    write_file(shop, "equality-deletes", made[5:], **{"delete-type": "equality"})
    table = shop.lake.table(TABLE)
    for name, content in (("empty.parquet", b""), ("torn.parquet", b"PAR1" + b"\0" * 40), ("note.txt", b"hello")):
        with table.io.new_output(f"{table.location()}/data/{name}").create() as file:
            file.write(content)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(number): LOST for number in (5, 6, 7)}
    assert [outside(shop, context, number) for number in (5, 6, 7)] == [
        [
            {"place": "data/killed.parquet:2", "reason": "unlisted"},
            {"place": "data/lost.parquet:0", "reason": "unlisted"},
        ],
        [{"place": "data/lost.parquet:1", "reason": "unlisted"}],
        [{"place": "data/lost.parquet:2", "reason": "unlisted"}],
    ]
    assert "data/lost.parquet:2,inafilethatnosnapshotlists" in explained(shop, 7)
    repair(shop, context)


def adopted(shop: IcebergShop, context: WindowContext) -> Mapping[str, Any]:
    """Repair a window, certify it, and take the repair back; return the rows by position that the repair left, and the
    paths of the files."""
    before = shop.lake.rows(TABLE)
    plan = shop.planned(context)
    assert shop.forecast_of(context, plan) == {"upsert": {Forecast.WOULD: plan.counts["upsert"]}}
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    files = [file["file_path"] for file in shop.lake.table(TABLE).inspect.files().to_pylist()]
    state = {"rows": shop.lake.rows(TABLE), "files": [path.rpartition("/")[2] for path in files]}
    assert shop.close(context).state is WindowState.CERTIFIED
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(TABLE)) == ({}, before)
    return state


def test_an_orphan_is_adopted_as_it_is_when_each_of_its_positions_is_missing(shop: IcebergShop) -> None:
    describe(shop, orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    write_file(shop, "killed", made[3:6])
    write_file(shop, "lost", made[5:])
    write_file(shop, "lost2", made[5:])

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {key(number): LOST for number in (5, 6, 7)}
    state = adopted(shop, context)

    assert state["rows"] == in_order(made)
    assert len(state["files"]) == 2
    assert "lost.parquet" in state["files"]


def test_rows_of_orphans_that_hold_others_or_other_values_are_not_adopted_as_they_are(shop: IcebergShop) -> None:
    describe(shop, orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    write_file(shop, "killed", made[4:7])
    write_file(shop, "wrong", [{**made[7], "amount": Decimal("99.99")}])

    state = adopted(shop, shop.judge_and_ask_the_gate())

    assert state["rows"] == in_order([*made[:7], without_stamp(made[7])])
    assert not {"killed.parquet", "wrong.parquet"} & set(state["files"])


def test_orphans_of_a_table_whose_columns_and_partitions_changed_are_adopted_as_far_as_they_fit(
    shop: IcebergShop,
) -> None:
    describe(shop, leave="[stamp, more]", orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:2])
    write_file(shop, "before", [made[3]])
    table = shop.lake.table(TABLE)
    with table.update_schema() as update:
        update.add_column("more", STRING)
    with table.update_spec() as spec:
        spec.add_field("region", "identity")
    shop.lake.append(TABLE, [{**made[2], "more": "x"}])
    write_file(shop, "one-region", [{**made[4], "more": "y"}])
    write_file(shop, "two-regions", [{**row, "more": "z"} for row in made[5:]])

    state = adopted(shop, shop.judge_and_ask_the_gate())

    more = [None, None, "x", None, "y", "z", "z", "z"]
    assert state["rows"] == in_order({**row, "more": text} for row, text in zip(made, more, strict=True))
    assert "one-region.parquet" in state["files"]
    assert not {"two-regions.parquet"} & set(state["files"])


def test_an_orphan_that_another_writer_commits_meanwhile_is_not_adopted(
    shop: IcebergShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(shop, orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    path = write_file(shop, "lost", made[5:])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)

    def comes_first(table: Table, **settings: Any) -> int | None:
        shop.lake.table(TABLE).add_files([path])
        return commit.commit(table, **settings)

    monkeypatch.setattr(chunk_commit, "commit", comes_first)
    shop.run(context, plan)

    assert shop.refused(plan) == {
        key(number): "arrived: a row of this key appeared after the plan was made" for number in (5, 6, 7)
    }
    assert shop.lake.rows(TABLE) == in_order(made)


def test_a_file_that_was_committed_twice_under_two_names_is_found_as_repeats(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:6])
    shop.lake.append(TABLE, made[6:])
    shop.lake.append(TABLE, made[6:])

    context = shop.judge_and_ask_the_gate()

    repeated = ("duplicate", "written_before_committed")
    assert shop.found(context, STORE_HOP) == {key(6): repeated, key(7): repeated}
    snapshots = [entry.snapshot_id for entry in shop.lake.table(TABLE).history()]
    places = [copy["place"] for copy in shop.evidence(context, STORE_HOP, key(6))["target"]]
    assert {place.partition("(snapshot ")[2] for place in places} == {f"{snapshot})" for snapshot in snapshots[1:]}
    repair(shop, context)


def test_a_table_that_was_renamed_or_dropped_under_the_sink_is_named(shop: IcebergShop) -> None:
    describe(shop)
    shop.lake.append(TABLE, rows(shop))
    shop.lake.catalog.rename_table(TABLE, "dw.elsewhere")

    with pytest.raises(ConfigurationError, match=r"there is no table dw\.warehouse in the catalogue"):
        shop.judge_and_ask_the_gate()


def test_rows_of_a_table_that_was_dropped_and_made_again_are_missing(shop: IcebergShop) -> None:
    describe(shop)
    shop.lake.append(TABLE, rows(shop)[:2])
    shop.lake.make_table(TABLE, POSITIONED)
    shop.lake.append(TABLE, rows(shop)[2:])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(0): LOST, key(1): LOST}
    repair(shop, context)
    assert without_stamp(rows(shop)[0]) not in in_order(shop.lake.rows(TABLE))


@pytest.mark.parametrize(
    ("first", "other", "are_same"),
    [
        ("s3://lake/dw/a.parquet", "s3a://lake/dw/a.parquet", True),
        ("file:///lake/a.parquet", "/lake/a.parquet", True),
        ("file:/lake/a.parquet", "/lake/a.parquet", True),
        ("hdfs://one:8020/a", "hdfs://service/a", True),
        ("s3://lake/a", "s3://other/a", False),
        ("/lake/a", "hdfs://one/lake/a", False),
    ],
)
def test_one_file_is_known_under_each_name_that_writers_give_it(first: str, other: str, *, are_same: bool) -> None:
    assert (same_file(first) == same_file(other)) is are_same
