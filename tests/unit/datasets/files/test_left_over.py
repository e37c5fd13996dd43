"""Check which files beside a dataset look like rows that no reader takes."""

import pytest

from makewhole.datasets.files.committed import is_left_over

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("path", "is_left"),
    [
        ("_temporary/0/task_1/part-0", True),
        ("dt=1/.spark-staging-7/dt=1/part-0.parquet", True),
        ("dt=1/.part-0.parquet.inprogress.a1", True),
        (".part-0-3.inprogress", True),
        ("dt=1/_a.tmp", True),
        ("a.parquet._COPYING_", True),
        ("a.parquet", False),
        ("a.tmp", False),
        ("_day=1/a.parquet", False),
        ("_SUCCESS", False),
        ("_manifest-1.json", False),
        ("_metadata", False),
        (".a.parquet.crc", False),
        ("_temporary/0/.part-0.crc", False),
        ("_makewhole/plan.orders/staged.0.1.0.parquet", False),
    ],
)
def test_files_are_left_over_where_attempts_write_them(path: str, is_left: bool) -> None:
    assert is_left_over(path) is is_left
