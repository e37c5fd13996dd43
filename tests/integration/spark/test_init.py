"""Test the pipeline file that `makewhole init` drafts from real places: it is good, and a window of it is judged."""

import json
from pathlib import Path
from random import Random

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.config.json_schema import EDITOR_LINE
from makewhole.config.pipeline_file import load_pipeline
from tests.histories.shapes.changes import draw_orders
from tests.histories.shapes.formats import avro_value
from tests.integration.spark.test_value_formats import FORMATS, send
from tests.world.envelopes import behind_prefix
from tests.world.orders import orders
from tests.world.topics import commit_group
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def init(shop: ReconciledShop, *options: str) -> Result:
    places = ("--ledger", "db:outbox", "--topic", f"log:{shop.topic}", "--store", "db:warehouse")
    folder = ("--folder", str(shop.folder / "drafts"))
    return CliRunner().invoke(app, ["init", "drafted", *places, *folder, *options], catch_exceptions=False)


def test_a_drafted_file_is_good_and_says_what_was_guessed(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    commit_group(shop.bootstrap, "loader", shop.topic, 5)

    result = init(shop)

    assert result.exit_code == 0, result.output
    file = shop.folder / "drafts" / "drafted.yaml"
    assert f"makewhole check --live {file}" in result.output
    pipeline = load_pipeline(file)
    assert dict(pipeline.compare) == {"number": "int", "region": "string", "amount": "decimal(8,2)"}
    assert {name: point.key for name, point in pipeline.points.items()} == {
        "ledger": ("id",),
        "topic": ("$.id",),
        "store": ("id",),
    }
    assert pipeline.table("ledger").time == "at"
    assert [hop.consumer_group for hop in pipeline.hops] == [None, "loader"]
    text = file.read_text()
    assert text.startswith(f"{EDITOR_LINE}pipeline.schema.json\n")
    assert text.count("guessed") >= 5
    schema = json.loads((file.parent / "pipeline.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    checked = CliRunner().invoke(app, ["check", "--tables", str(file)], catch_exceptions=False)
    assert checked.exit_code == 0, checked.output


def test_a_file_that_is_there_is_never_overwritten(shop: ReconciledShop) -> None:
    assert init(shop).exit_code == 0
    file = shop.folder / "drafts" / "drafted.yaml"
    file.write_text("mine")
    again = init(shop)
    assert (again.exit_code, file.read_text()) == (2, "mine")


def test_an_empty_topic_and_a_topic_of_texts_are_said_to_be_guessed(shop: ReconciledShop) -> None:
    assert init(shop).exit_code == 0
    file = shop.folder / "drafts" / "drafted.yaml"
    assert "guessed, as the topic is empty" in file.read_text()
    file.unlink()
    shop.send_raw(b"no JSON")
    assert init(shop).exit_code == 0
    assert "guessed, as its values are no JSON objects" in file.read_text()


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_of_values_is_guessed_by_reading_some(shop: ReconciledShop, name: str) -> None:
    form = FORMATS[name]
    send(shop, form, orders(range(5)))

    result = init(shop)

    assert result.exit_code == 0, result.output
    point = load_pipeline(shop.folder / "drafts" / "drafted.yaml").topic("topic")
    assert (point.value, point.key) == (form.name, ("$.id",))


def test_values_that_begin_with_the_number_of_a_schema_are_guessed_to_be_avro(shop: ReconciledShop) -> None:
    shop.send_raw(behind_prefix(avro_value(draw_orders(Random(1), 1)[0])))

    assert init(shop).exit_code == 0
    text = (shop.folder / "drafts" / "drafted.yaml").read_text()
    assert "value: avro             # guessed, as values begin with the number of a schema" in text


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--ledger", "db:nowhere", "there is no table nowhere behind connection db"),
        ("--store", "warehouse", "'warehouse' is no connection with a name"),
        ("--topic", "log:no-such-topic", "topic 'no-such-topic' does not exist"),
        ("--ledger", "elsewhere:outbox", "AIRFLOW_CONN_ELSEWHERE: is not set"),
    ],
)
def test_what_is_not_there_is_named_and_nothing_is_written(
    shop: ReconciledShop, option: str, value: str, words: str
) -> None:
    result = init(shop, option, value)
    assert result.exit_code == 2
    assert words in result.output
    assert not Path(shop.folder / "drafts").exists()
