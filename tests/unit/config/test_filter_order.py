"""Check which texts a `where` may put in an order, before any table is asked."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import read_file

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: flights
{compare}
points:
  flights: {{kind: topic, connection: kafka_main, topic: flights, key: "$.flight_id"}}
  mirror: {{kind: {kind}, key: {key}}}
hops:
  - {{from: flights, to: mirror, where: "at < '2013-01-01' and n > 5"}}
"""
TOPIC = ("topic, connection: kafka_main, topic: mirror", '"$.flight_id"')
STORE = ("store, connection: warehouse_db, table: dw.departures", "flight_id")


@pytest.mark.parametrize(
    ("compare", "mirror", "is_refused"),
    [
        ("", TOPIC, True),
        ("compare: {at: string}", TOPIC, True),
        ("compare: {at: timestamp}", TOPIC, False),
        ("compare: {at: date}", TOPIC, False),
        ("", STORE, False),
        ("compare: {at: string}", STORE, False),
    ],
)
def test_texts_have_an_order_where_something_says_that_they_are_more(
    write: Callable[..., Path], compare: str, mirror: tuple[str, str], is_refused: bool
) -> None:
    """What a table's column is, its database says when the window is opened."""
    kind, key = mirror
    problems = read_file(write(FILE.format(compare=compare, kind=kind, key=key))).problems
    assert [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in problems] == [
        "hops[0].where (line 8): at is put in an order, and nothing says that it is more than a text; texts have no "
        "order that all systems share. Declare it under 'compare', for example 'compare: {at: timestamp}', or name the "
        "values: 'at in (…)'"
    ] * is_refused
