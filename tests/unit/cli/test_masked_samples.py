"""Test that a dry run shows no value of a masked column, and still shows which rows and columns would change."""

import json

import pytest

from makewhole.cli.plan.masked_samples import CHANGED, HIDDEN, masked_change
from makewhole.tables.row_change import ColumnChange, HowFilled, RowChange

pytestmark = pytest.mark.unit


def row(**values: object) -> str:
    return json.dumps(values)


def test_a_changed_value_is_seen_to_change_and_not_what_it_is() -> None:
    change = RowChange(
        before=('{"id":"K1","name":"anna","fare":1.50}',),
        after=('{"id":"K1","name":"anne","fare":1.50}',),
        columns=(
            ColumnChange(name="name", how=HowFilled.WRITTEN, before="anna", after="anne"),
            ColumnChange(name="fare", how=HowFilled.WRITTEN, before="1.50", after="1.5"),
        ),
    )

    shown = masked_change(change, {"name"})

    assert shown.before == ('{"id":"K1","name":"(masked)","fare":1.50}',)
    assert shown.after == ('{"id":"K1","name":"(masked, changed)","fare":1.50}',)
    assert [(column.name, column.before, column.after) for column in shown.columns] == [
        ("name", HIDDEN, CHANGED),
        ("fare", "1.50", "1.5"),
    ]


def test_a_value_that_stays_is_the_same_and_null_is_null() -> None:
    before = row(id="K1", name="anna", seat=None, fare=1)
    change = RowChange(before=(before,), after=(row(id="K1", name="anna", seat="4a", fare=2),))

    shown = masked_change(change, {"name", "seat"})

    assert json.loads(shown.before[0]) == {"id": "K1", "name": HIDDEN, "seat": None, "fare": 1}
    assert json.loads(shown.after[0]) == {"id": "K1", "name": HIDDEN, "seat": CHANGED, "fare": 2}


def test_rows_that_are_moved_aside_or_new_are_masked_alike() -> None:
    first, second = row(id="K1", name="anna"), row(id="K1", name="anne")
    aside = masked_change(RowChange(before=(first, second), after=(first,), aside=(second,)), {"name"})
    new = masked_change(
        RowChange(
            before=(),
            after=(first,),
            columns=(ColumnChange(name="name", how=HowFilled.WRITTEN, before=None, after="anna"),),
        ),
        {"name"},
    )

    assert aside.after[0] == aside.before[0]
    assert aside.aside == (aside.before[1],)
    assert json.loads(new.after[0]) == {"id": "K1", "name": HIDDEN}
    assert [(column.before, column.after) for column in new.columns] == [(None, HIDDEN)]
