"""Test the meter of benchmarks on real processes: none is left out, and none is counted twice."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.measuring.meter import Meter

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(120)]

_BURN = """
import os, sys, time
def burn(seconds):
    while time.process_time() < seconds: pass
"""
_OUTLIVED = """
if not os.fork():
    if not os.fork():
        time.sleep(0.5)  # until its parent is gone
        burn(1.5)
        os._exit(0)
    time.sleep(0.4)
    os._exit(0)
os.wait()
"""
_NOT_WAITED_FOR = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if not os.fork():
    burn(1.5)
    os._exit(0)
"""
_WAITED_FOR = """
if not os.fork():
    if not os.fork():
        burn(1)
        os._exit(0)
    os.wait()
    burn(0.5)
    os._exit(0)
os.wait()
"""
_A_ZOMBIE_FIRST = """
if not os.fork():
    burn(1.5)
    os._exit(0)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
time.sleep(0.5)
os.wait()
"""
_TOO_SHORT_TO_BE_SEEN = """
for _ in range(30):
    if not os.fork():
        burn(0.05)
        os._exit(0)
    os.wait()
"""


@contextmanager
def _running(program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that says when it is up and when all its children have ended, and waits to be ended."""
    text = f"{_BURN}print('up', flush=True)\nend, kept = os.pipe()\n{program}\nos.close(kept)\nos.read(end, 1)\n"
    text += "time.sleep(0.5)\nprint('done', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "up\n"
        yield it


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_OUTLIVED, id="a grandchild that outlives its parent"),
        pytest.param(_NOT_WAITED_FOR, id="a child that is not waited for"),
        pytest.param(_WAITED_FOR, id="a child and a grandchild that are waited for"),
        pytest.param(_A_ZOMBIE_FIRST, id="a child that is waited for later"),
        pytest.param(_TOO_SHORT_TO_BE_SEEN, id="children that end between two looks"),
    ],
)
def test_the_processor_time_of_every_process_is_counted_once(program: str) -> None:
    with _running(program) as process, Meter(process.pid) as meter:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"

    assert meter.cost.jvm_cpu_seconds == 0
    assert meter.cost.python_cpu_seconds == pytest.approx(1.5, abs=0.3)


def test_processes_that_were_there_before_are_counted_with_it() -> None:
    later = "time.sleep(1)\nburn(0.8)"
    with _running(later) as first, _running(later) as other, Meter(first.pid, (other.pid,)) as meter:
        for process in (first, other):
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"

    assert meter.cost.python_cpu_seconds == pytest.approx(1.6, abs=0.3)
