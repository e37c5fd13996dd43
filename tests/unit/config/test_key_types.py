"""Check the `key` of a point: a name, a list of names, or names with their types."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.points import KeyType

pytestmark = pytest.mark.unit

AT_LEDGER, AT_TOPIC = "key: flight_id, time", 'key: "$.flight_id"'


def test_a_key_says_its_types_in_the_order_of_its_parts(minimal: str, write: Callable[..., Path]) -> None:
    text = minimal.replace(AT_LEDGER, "key: {flight_id: bigint, day: date}, time")
    text = text.replace(AT_TOPIC, 'key: {"$.flight_id": bigint, "$.day": date}')
    text = text.replace("key: flight_id}", "key: [flight_id, day]}")
    points = load_pipeline(write(text)).points
    assert {name: (point.key, point.key_types, point.key_layout) for name, point in points.items()} == {
        "outbox": (("flight_id", "day"), (KeyType.BIGINT, KeyType.DATE), ()),
        "flights": (("$.flight_id", "$.day"), (KeyType.BIGINT, KeyType.DATE), ()),
        "warehouse": (("flight_id", "day"), (), ()),
    }


@pytest.mark.parametrize("kind", list(KeyType))
def test_every_type_can_be_declared(minimal: str, write: Callable[..., Path], kind: KeyType) -> None:
    text = minimal.replace(AT_LEDGER, f"key: {{flight_id: {kind.value}}}, time")
    assert load_pipeline(write(text)).points["outbox"].key_types == (kind,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            AT_LEDGER,
            "key: {flight_id: int}, time",
            "points.outbox.key.flight_id (line 4): 'int' is not a type of keys. Write 'bigint'",
        ),
        (
            AT_LEDGER,
            'key: {flight_id: "decimal(10,2)"}, time',
            "points.outbox.key.flight_id (line 4): 'decimal(10,2)' is not a type of keys. Write 'decimal'",
        ),
        (
            AT_LEDGER,
            "key: {flight_id: uid}, time",
            "points.outbox.key.flight_id (line 4): 'uid' is not a type of keys. Allowed: bigint, boolean, char, date, "
            "decimal, inet, string, timestamp, uuid. Did you mean 'uuid'?",
        ),
        (
            AT_TOPIC,
            "key: {flight_id: uuid}",
            "points.flights.key.flight_id (line 5): 'flight_id' is not a place in a record. Write '$.field' (with "
            "further '.field' inside it), 'kafka.key' or 'header:NAME'. Did you mean '$.flight_id'?",
        ),
        (
            AT_LEDGER,
            "key: {}, time",
            "points.outbox.key (line 4): names no part. Name at least one, with its type: 'key: {id: bigint}'",
        ),
        (
            AT_LEDGER,
            "key: {flight_id: [bigint]}, time",
            "points.outbox.key.flight_id (line 4): is a list, not text. Write text",
        ),
    ],
)
def test_a_type_that_is_none_is_refused_with_what_to_write(
    minimal: str, write: Callable[..., Path], old: str, new: str, message: str
) -> None:
    path = write(minimal.replace(old, new, 1))
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_pair_of_declared_types_that_cannot_meet_is_named(minimal: str, write: Callable[..., Path]) -> None:
    text = minimal.replace(AT_LEDGER, "key: {flight_id: bigint}, time").replace(AT_TOPIC, 'key: {"$.flight_id": uuid}')
    path = write(text)
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    assert str(caught.value) == (
        f"{path}: points.flights.key (line 5): is declared a uuid, and the key of outbox, which is the same, a bigint. "
        "Declare the same types at both, or at one of them alone: it holds for all points that hops join with it"
    )
