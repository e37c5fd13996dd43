"""Test what the process does before Spark may fork workers from it, in a process of its own."""

import subprocess
import sys

import pytest

from makewhole.kinds import modules_of
from makewhole.model.connection import IcebergConnection, PostgresConnection

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


def test_all_its_modules_are_there_and_none_of_them_loads_polars() -> None:
    """One that is not there would leave those after it to each worker."""
    program = """if True:
        import sys
        from makewhole_spark import worker_daemon
        worker_daemon._load_modules()
        print(set(worker_daemon._MODULES) <= set(sys.modules), "polars" in sys.modules)
    """
    assert run(program) == (0, "True False\n")


def test_it_loads_the_modules_that_the_job_names_besides() -> None:
    program = """if True:
        import os, sys
        from makewhole_spark import worker_daemon
        worker_daemon._MODULES = ()
        os.environ[worker_daemon.MORE_MODULES] = "wave,colorsys"
        worker_daemon.load()
        print({"wave", "colorsys"} <= set(sys.modules))
    """
    assert run(program) == (0, "True\n")


def test_the_libraries_of_iceberg_start_no_threads_and_load_no_polars() -> None:
    """The daemon forks: threads would not live on in its workers."""
    lake = IcebergConnection(id="lake", catalog="lake", properties={"type": "sql"})
    named = modules_of([PostgresConnection(id="db", dsn=""), lake])
    program = f"""if True:
        import os, sys
        from makewhole_spark import worker_daemon
        worker_daemon.load()
        before = len(os.listdir("/proc/self/task"))
        worker_daemon._MODULES = ()
        os.environ[worker_daemon.MORE_MODULES] = "{",".join(named)}"
        worker_daemon.load()
        print("pyiceberg.catalog.sql" in sys.modules, len(os.listdir("/proc/self/task")) - before)
        print("polars" in sys.modules)
    """
    assert run(program) == (0, "True 0\nFalse\n")


def test_no_more_is_loaded_for_other_tables() -> None:
    rest = IcebergConnection(id="lake", catalog="lake", properties={"type": "rest"})
    assert modules_of([PostgresConnection(id="db", dsn="")]) == ()
    assert "pyiceberg.catalog.sql" not in modules_of([rest])
