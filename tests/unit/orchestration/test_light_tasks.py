"""Test what the task of a committed step loads: no data frames, which take longer to load than it works."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

_PROGRAM = """if True:
    import sys
    from types import SimpleNamespace
    from makewhole.orchestration.steps import window_of_run
    window_of_run.opened_window = lambda context: {"pipeline": "shop", "window": 1, "revision": 1}
    try:
        window_of_run.committed_step("snapshot", {})
    except Exception as error:
        print(type(error).__name__)
    import makewhole.window.spark_steps.committed, makewhole.journal.windows
    import makewhole.journal.results.hop_results, makewhole.journal.results.snapshot_manifests
    import makewhole.journal.results.handover_keys, makewhole.journal.results.gate_answers
    import makewhole.journal.findings.window_findings, makewhole.journal.key_index.runs, makewhole.journal.plans
    print([name for name in ("polars", "numba", "pandas", "pyspark") if name in sys.modules])
"""


def test_a_task_that_looks_whether_its_step_is_committed_loads_no_data_frames() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ConfigurationError\n[]\n"), done.stderr
