"""Test how polars is set up in workers."""

import os
import subprocess
import sys

import pytest

from makewhole_spark.python_worker import memory_of_polars

pytestmark = pytest.mark.unit

ALLOCATOR = "_RJEM_MALLOC_CONF"
BELOW = "import os, polars; print(os.environ['_RJEM_MALLOC_CONF'])"


def test_what_the_machines_owner_has_set_stays() -> None:
    assert memory_of_polars({ALLOCATOR: "narenas:1"}) == {}
    assert list(memory_of_polars({})) == [ALLOCATOR]


@pytest.mark.parametrize(
    ("owner", "is_set"), [({}, True), ({"POLARS_THP": "1"}, True), ({ALLOCATOR: "narenas:1"}, False)]
)
def test_what_polars_writes_for_the_processes_below_it_is_no_setting(owner: dict[str, str], is_set: bool) -> None:
    """A driver has imported polars by the time that its session is there, and so may have what started the driver."""
    there = {name: text for name, text in os.environ.items() if name != ALLOCATOR} | owner
    for _ in range(2):
        there[ALLOCATOR] = subprocess.run(
            [sys.executable, "-c", BELOW], env=there, capture_output=True, text=True
        ).stdout.strip()
        assert bool(memory_of_polars(there)) == is_set
