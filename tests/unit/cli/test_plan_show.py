"""Test what `makewhole plan show` says of a plan beside its actions."""

import pytest

from makewhole.cli.plan.command import _locks

pytestmark = pytest.mark.unit


def test_a_plan_says_how_many_chunks_make_other_writers_wait() -> None:
    assert _locks({"warehouse": 2}) == [
        "warehouse has no unique index on its key: its other writers wait during 2 chunks, each for as long as its "
        "transaction takes"
    ]
    assert _locks({}) == []
