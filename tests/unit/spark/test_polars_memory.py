"""Test how polars is set up in workers."""

import pytest

from makewhole_spark.python_worker import memory_of_polars

pytestmark = pytest.mark.unit


def test_what_the_machines_owner_has_set_stays() -> None:
    assert memory_of_polars({"_RJEM_MALLOC_CONF": "narenas:1"}) == {}
    assert list(memory_of_polars({})) == ["_RJEM_MALLOC_CONF"]
