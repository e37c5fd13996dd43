"""Test what the process does before Spark may fork workers from it, in a process of its own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit


def run(program: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_what_a_module_prints_is_not_taken_for_the_daemons_answer_to_spark() -> None:
    program = """if True:
        from makewhole_spark import worker_daemon
        worker_daemon._load_modules = lambda: print("a greeting")
        worker_daemon.load()
    """
    assert run(program) == (0, "")


def test_what_cannot_be_loaded_is_left_to_the_task_that_needs_it() -> None:
    program = """if True:
        import gc
        from makewhole_spark import worker_daemon
        worker_daemon._MODULES = ("nowhere",)
        worker_daemon.load()
        print(gc.isenabled())
    """
    assert run(program) == (0, "True\n")
