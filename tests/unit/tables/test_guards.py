"""Test by what rows are known again that a plan wrote, or left."""

import pytest

from makewhole.model.errors import ActionRefusedError
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.guards import require_insertable, row_as_left
from makewhole.tables.rows import TableRow

pytestmark = pytest.mark.unit

WRITTEN = '{"id":"O1","v":9007199254740993,"dt":"d1","old":null}'
READ = '{"id":"O1","v":9007199254740993,"old":null,"dt":"d1"}'


def effect_of(kind: EffectKind, after: str | None, before: str | None = None) -> Effect:
    """Return what an action did to a row."""
    return Effect(plan="p", target="t", chunk=0, seq=0, kind=kind, place="a:0", before=before, after=after)


def row_of(image: str, place: str = "a:0") -> TableRow:
    """Return a row with an image."""
    return TableRow(table_oid=1, ctid="", text=image, image=image, place=place)


def test_a_row_is_as_the_plan_left_it_whatever_the_order_of_its_columns() -> None:
    row = row_of(READ)
    assert row_as_left(effect_of(EffectKind.INSERTED, WRITTEN), [row]) is row


@pytest.mark.parametrize(
    ("after", "now"),
    [
        ('{"v":9007199254740993}', '{"v":9007199254740992}'),
        ('{"v":0.1}', '{"v":0.10000000000000000001}'),
        ('{"v":1}', '{"v":true}'),
        ('{"v":1}', '{"v":"1"}'),
        ('{"v":["1"]}', '{"v":1}'),
        ('{"v":[1,2]}', '{"v":[2,1]}'),
        ('{"v":null}', "{}"),
        ("(1,2)", "(2,1)"),
        ("(1,2)", '{"1":2}'),
    ],
)
def test_a_row_that_holds_something_else_is_another_one(after: str, now: str) -> None:
    assert row_as_left(effect_of(EffectKind.INSERTED, after), [row_of(now)]) is None


@pytest.mark.parametrize("image", ["(1,O1)", "{not JSON", "", '{"v":' + "9" * 5000 + "}", '{"a":{"b":[{"c":1}]}}'])
def test_any_image_equals_itself(image: str) -> None:
    row = row_of(image)
    assert row_as_left(effect_of(EffectKind.UPDATED, image), [row]) is row


def test_of_equal_rows_the_one_in_its_place_is_found() -> None:
    rows = [row_of(READ, "b:7"), row_of(READ, "a:0")]
    assert row_as_left(effect_of(EffectKind.INSERTED, WRITTEN), rows) is rows[1]


def test_a_row_goes_back_beside_the_one_that_stayed_and_those_put_back_whatever_the_order_of_their_columns() -> None:
    moved = effect_of(EffectKind.MOVED, after=WRITTEN, before='{"id":"O1","v":2}')
    back = '{"v":3,"id":"O1"}'
    require_insertable(moved, [row_of(READ), row_of('{"id":"O1","v":3}')], [back])
    with pytest.raises(ActionRefusedError, match="rows of this key changed"):
        require_insertable(moved, [row_of(READ), row_of('{"id":"O1","v":3}'), row_of(back)], [back])
    with pytest.raises(ActionRefusedError, match="that stayed is gone"):
        require_insertable(moved, [], [])


@pytest.mark.parametrize("image", [WRITTEN, '{"id":"O1","v":2}'])
def test_a_row_does_not_go_back_where_one_came_since_that_equals_the_one_that_stayed(image: str) -> None:
    """Two rows of the key were the same, or not, and one of them was moved aside; a loader added a third."""
    moved = effect_of(EffectKind.MOVED, after=WRITTEN, before=image)
    require_insertable(moved, [row_of(READ)], [])
    with pytest.raises(ActionRefusedError, match="rows of this key changed"):
        require_insertable(moved, [row_of(READ), row_of(WRITTEN, "a:1")], [])


def test_of_three_equal_rows_both_that_were_moved_aside_go_back() -> None:
    moved = effect_of(EffectKind.MOVED, after=WRITTEN, before=WRITTEN)
    rows = [row_of(READ), row_of(WRITTEN, "a:1")]
    require_insertable(moved, rows, [WRITTEN])
    with pytest.raises(ActionRefusedError, match="rows of this key changed"):
        require_insertable(moved, [*rows, row_of(WRITTEN, "a:2")], [WRITTEN])
