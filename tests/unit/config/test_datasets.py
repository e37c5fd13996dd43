"""Test that datasets are read from pipeline files as agreed, and what is said of mistakes in them."""

from pathlib import Path

import pytest

from makewhole.config.connections import from_environment
from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.kinds import server_of
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ConfigurationError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint

pytestmark = pytest.mark.unit

POSITIONED = "{kind: dataset, connection: lake, format: iceberg, table: dw.orders, position: _kafka_metadata}"


def written(folder: Path, dataset: str, key: str = "position") -> Path:
    """Write a pipeline from a topic into a dataset."""
    path = folder / "p.yaml"
    path.write_text(
        "version: 2\npipeline: p\ncompare: {amount: int}\npoints:\n"
        f"  log: {{kind: topic, connection: k, topic: orders, key: {key}}}\n  lake: {dataset}\n"
        "hops:\n  - {from: log, to: lake}\n"
    )
    return path


def test_a_dataset_without_a_key_is_known_by_the_positions_of_its_topic(tmp_path: Path) -> None:
    assert load_pipeline(written(tmp_path, POSITIONED)).points["lake"] == TablePoint(
        name="lake",
        kind=PointKind.STORE,
        connection="lake",
        table="dw.orders",
        key=("_kafka_metadata.partition", "_kafka_metadata.offset"),
        dataset=DatasetPlace(
            format="iceberg",
            partition="_kafka_metadata.partition",
            offset="_kafka_metadata.offset",
            topic="_kafka_metadata.topic",
            of_topics=("orders",),
        ),
    )


def test_files_have_a_path_and_name_their_positions_one_by_one(tmp_path: Path) -> None:
    text = "{kind: dataset, connection: h, format: parquet, path: /dw/orders, position: {partition: p, offset: o}}"
    point = load_pipeline(written(tmp_path, text)).points["lake"]
    assert isinstance(point, TablePoint)
    assert (point.table, point.key) == ("/dw/orders", ("p", "o"))
    assert point.dataset == DatasetPlace(format="parquet", partition="p", offset="o")


def test_a_table_is_named_by_its_uuid_however_that_is_written(tmp_path: Path) -> None:
    text = POSITIONED.replace("position", "uuid: 6B2C6D1E9A0F4F439B1D0D6F4E1C2A3B, position")
    point = load_pipeline(written(tmp_path, text)).points["lake"]
    assert isinstance(point, TablePoint)
    assert point.dataset is not None
    assert point.dataset.uuid == "6b2c6d1e-9a0f-4f43-9b1d-0d6f4e1c2a3b"


@pytest.mark.parametrize(
    ("dataset", "key", "messages"),
    [
        (
            "{kind: dataset, connection: lake, table: dw.orders, key: id}",
            '"$.id"',
            ["points.lake.format (line 6): is missing. Say which it is: iceberg, parquet"],
        ),
        (
            "{kind: dataset, connection: lake, format: orc, table: dw.orders, key: id}",
            '"$.id"',
            ["points.lake.format (line 6): 'orc' is not a format of datasets. Allowed: iceberg, parquet"],
        ),
        (
            "{kind: dataset, connection: lake, format: iceberg, path: /dw, table: orders, key: id}",
            '"$.id"',
            [
                "points.lake.path (line 6): is not how a dataset in iceberg is known. Write 'table' instead",
                "points.lake.table (line 6): 'orders' is not the name of a table in a catalogue. Write its namespace "
                "and its name, with dots between: 'dw.orders'",
            ],
        ),
        (
            "{kind: dataset, connection: lake, format: iceberg, table: dw.orders}",
            '"$.id"',
            ["points.lake.key (line 6): is missing. Say what identifies a business event, one name or a list of them"],
        ),
        (
            "{kind: dataset, connection: lake, format: iceberg, table: dw.orders, position: {offset: o}}",
            "position",
            [
                "points.lake.position (line 6): does not name the columns with the partition and the offset. Write "
                "'position: _kafka_metadata' for a column with these parts, or 'position: {partition: p, offset: o}'"
            ],
        ),
        (
            POSITIONED,
            '["$.a", "$.b"]',
            [
                "points.lake (line 6): has no 'key': its rows are known by their positions, and log is not. Write "
                "'key: position' at points.log if it is the topic that they came from, or name a 'key' here"
            ],
        ),
        (
            "{kind: dataset, connection: lake, format: iceberg, table: dw.orders, key: id, payload: p}",
            '"$.id"',
            [
                "points.lake.payload (line 6): is not a key here. Allowed: columns, committed, connection, erased, "
                "format, key, kind, orphans, path, position, table, time, uuid, version"
            ],
        ),
        (
            POSITIONED.replace("position", "uuid: newest, position"),
            "position",
            [
                "points.lake.uuid (line 6): 'newest' is not a uuid. Write the one in the table's metadata "
                "(`table-uuid`)",
            ],
        ),
        (
            "{kind: dataset, connection: h, format: parquet, path: /dw/orders, key: id, uuid: "
            "6b2c6d1e-9a0f-4f43-9b1d-0d6f4e1c2a3b}",
            '"$.id"',
            ["points.lake.uuid (line 6): is not for parquet, whose files have none. Take it out"],
        ),
        (
            POSITIONED.replace("position", "orphans: adpot, position"),
            "position",
            [
                "points.lake.orphans (line 6): 'adpot' is not what becomes of orphans. Allowed: adopt, report. Did you "
                "mean 'adopt'?"
            ],
        ),
        (
            POSITIONED.replace("position", "orphans: adopt, key: id, position"),
            '"$.id"',
            [
                "points.lake.orphans (line 6): has rows that are not known by their positions: which of them are lost "
                "would be guessed. Name `position`, and no `key`; or take the line out, and missing rows are written "
                "from their records"
            ],
        ),
    ],
)
def test_mistakes_in_a_dataset_are_said(tmp_path: Path, dataset: str, key: str, messages: list[str]) -> None:
    problems = read_file(written(tmp_path, dataset, key)).problems
    assert [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in problems] == messages


def test_secrets_of_a_catalogue_stand_in_the_password_and_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = (
        '{"type": "sql", "uri": "postgresql+psycopg2://{login}:{password}@h:5/c", "s3.secret-access-key": "{password}"}'
    )
    text = f'{{"conn_type": "iceberg", "login": "anna", "password": "p@/ss", "schema": "prod", "extra": {extra}}}'
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    connection = from_environment("lake")

    assert isinstance(connection, IcebergConnection)
    assert dict(connection.properties) == {
        "type": "sql",
        "uri": "postgresql+psycopg2://anna:p%40%2Fss@h:5/c",
        "s3.secret-access-key": "p@/ss",
        "init_catalog_tables": "false",
    }
    assert repr(connection) == "IcebergConnection(id='lake', catalog='prod')"
    assert server_of(connection) == ["sql", "postgresql+psycopg2://h:5/c", "prod"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            '"extra": {}',
            "has no `type` of a catalogue in its extra (sql, rest, hive, glue, dynamodb, bigquery, in-memory)",
        ),
        ('"extra": {"type": "sql"}', "has no `uri` of the catalogue in its extra"),
        ('"host": "h", "extra": {}', "has a host, and the address of a catalogue is `uri` in the extra"),
        ('"extra": {"type": "rest", "uri": ["a"]}', "has a value in its extra that is no text, number or boolean"),
    ],
)
def test_a_catalogue_that_is_described_badly_is_said(
    fields: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", f'{{"conn_type": "iceberg", {fields}}}')
    with pytest.raises(ConfigurationError) as raised:
        from_environment("lake")
    assert [problem.found for problem in raised.value.problems] == [message]
