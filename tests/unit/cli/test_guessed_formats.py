"""Test which format `makewhole init` guesses of the values that it has read."""

import pytest

from makewhole.cli.init.value_formats import GuessedFormat, guess_format
from tests.world.envelopes import bare_change_event, behind_prefix
from tests.world.orders import orders

pytestmark = pytest.mark.unit

[ORDER] = orders(range(1))


@pytest.mark.parametrize(
    ("values", "guessed"),
    [
        ([], None),
        ([b"no JSON"], None),
        ([b"{}"], GuessedFormat("json")),
        ([b'{"id":1}', b'{"x":1,"id":2}'], GuessedFormat("json", ("id",))),
        ([b'{"op":"d","id":1}'], GuessedFormat("json", ("op", "id"))),
        ([bare_change_event("d", ORDER)], GuessedFormat("debezium", tuple(ORDER))),
        ([b'{"id":1}', behind_prefix(b'{"id":1}')], None),
        ([behind_prefix(b'{"id":1}')], GuessedFormat("json_schema", ("id",))),
        ([behind_prefix(b"\2a")], GuessedFormat("avro")),
    ],
)
def test_the_format_is_the_one_in_which_all_values_can_be_read(
    values: list[bytes], guessed: GuessedFormat | None
) -> None:
    assert guess_format(values) == guessed
