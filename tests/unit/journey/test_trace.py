"""How a person writes a key."""

import pytest

from makewhole.journey.copies import key_hash
from makewhole.journey.trace import business_key
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline, PointKind, TablePoint

pytestmark = pytest.mark.unit


def pipeline(*key: str) -> Pipeline:
    point = TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="ops.outbox", key=key)
    return Pipeline(name="flights", points={"outbox": point}, hops=())


@pytest.mark.parametrize(
    ("parts", "written", "key"),
    [
        (("id",), "K1", "K1"),
        (("id",), '["a","b"]', '["a","b"]'),
        (("id",), " K1 ", " K1 "),
        (("day", "no"), '["a","b"]', '["a","b"]'),
        (("day", "no"), '[ "a" , "\\u00e9" ]', '["a","é"]'),
    ],
)
def test_a_key_has_one_spelling(parts: tuple[str, ...], written: str, key: str) -> None:
    assert business_key(pipeline(*parts), written) == key


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        (("id",), ""),
        (("id",), "K\udcff"),
        (("day", "no"), ""),
        (("day", "no"), "a,b"),
        (("day", "no"), '["a"]'),
        (("day", "no"), '["a",2]'),
        (("day", "no"), '["a",""]'),
        (("day", "no"), '{"a":1,"b":2}'),
        (("day", "no"), "12"),
        (("day", "no"), '"ab"'),
    ],
)
def test_what_cannot_be_a_key_is_refused_with_an_example(parts: tuple[str, ...], written: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        business_key(pipeline(*parts), written)
    example = "the key's text" if len(parts) == 1 else '["part 1", "part 2"]'
    assert str(caught.value) == (
        f"command line: KEY: is no key of pipeline flights. Write {example}, as `makewhole findings` shows keys"
    )


def test_the_hash_is_the_one_that_snapshots_carry() -> None:
    assert key_hash("K1") == key_hash("K1")
    assert key_hash("") == "99aa06d3014798d86001c324468d497f"  # XXH3-128 of nothing, by its reference
