"""Test what loading Great Expectations loads: nothing of what none of our expectations uses."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

_PROGRAM = """if True:
    import sys
    from makewhole.gate.expectations import library_version
    library_version()
    print([name for name in ("scipy.optimize", "scipy.spatial", "scipy.stats._stats_py") if name in sys.modules])
"""


def test_the_library_is_loaded_without_the_statistics_that_none_of_our_expectations_uses() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
