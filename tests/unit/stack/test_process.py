"""Test that a process is known by its pid and its start time, never by its pid alone."""

import os
from pathlib import Path

import pytest

from makewhole.stack.process import ServerProcess

pytestmark = pytest.mark.unit

_BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
_OURSELVES = Path(f"/proc/{os.getpid()}/stat").read_text().strip()


@pytest.fixture
def process(tmp_path: Path) -> ServerProcess:
    return ServerProcess(name="server", directory=tmp_path)


def test_the_recorded_process_is_found(process: ServerProcess) -> None:
    process.pid_file.write_text(f"{_OURSELVES}\n{_BOOT}\n")

    assert process.pid() == os.getpid()


def test_a_recycled_pid_is_not_ours_and_is_never_signalled(process: ServerProcess) -> None:
    fields = _OURSELVES.rpartition(")")[2].split()
    fields[19] = str(int(fields[19]) - 1)
    process.pid_file.write_text(f"{os.getpid()} (java) {' '.join(fields)}\n{_BOOT}\n")

    assert process.pid() is None
    process.stop()  # would end this test run


def test_a_record_from_before_the_machine_came_up_counts_for_nothing(process: ServerProcess) -> None:
    process.pid_file.write_text(f"{_OURSELVES}\n00000000-0000-0000-0000-000000000000\n")

    assert process.pid() is None


def test_a_name_with_spaces_and_brackets_is_read(process: ServerProcess) -> None:
    fields = _OURSELVES.rpartition(")")[2]
    process.pid_file.write_text(f"{os.getpid()} (a ) b (c){fields}\n{_BOOT}\n")

    assert process.pid() == os.getpid()


@pytest.mark.parametrize("content", ["", "12", f"{_OURSELVES}\n"])
def test_a_half_written_record_is_no_record(process: ServerProcess, content: str) -> None:
    process.pid_file.write_text(content)

    assert not process.was_started()
    assert process.pid() is None
