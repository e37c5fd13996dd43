"""Start processes that outlive their command, and find them again by pid *and* start time.

Each is the leader of its own session. It writes its own kernel record (`/proc/<pid>/stat`) to the pid file before it
becomes the server, so there is no moment at which a server runs and no file names it, and a pid that the kernel has
given to another process since never matches.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from makewhole.model.errors import TransientError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# The pid file comes in as standard input, opened before the user is changed.
_RECORD_SELF_THEN_BECOME = (
    f'read -r stat < /proc/$$/stat; read -r boot < {_BOOT_ID}; printf "%s\\n" "$stat" "$boot" >&0; '
    'exec "$@" < /dev/null'
)
_POLL_SECONDS = 0.05
_RECORD_TIMEOUT_SECONDS = 10.0
_KILL_TIMEOUT_SECONDS = 5.0
_PAUSE_TIMEOUT_SECONDS = 5.0
_LOG_TAIL_LINES = 15

# Kept, because a server is intended to outlive the object that started it.
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """One server of the stack: `directory` holds its pid file and its log, and is its working directory."""

    name: str
    directory: Path

    @property
    def pid_file(self) -> Path:
        return self.directory / f"{self.name}.pid"

    @property
    def log_file(self) -> Path:
        return self.directory / f"{self.name}.log"

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], user: str | None = None) -> None:
        """Start it, unless it runs already. `user`: the operating system's user it shall run as (root only)."""
        if self.is_running():
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log, self.pid_file.open("wb") as record:
            started = subprocess.Popen(
                ["/bin/sh", "-c", _RECORD_SELF_THEN_BECOME, "sh", *command],
                cwd=self.directory,
                env=dict(environment),
                stdin=record,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        _started.append(started)
        _wait(lambda: self.was_started() or started.poll() is not None, _RECORD_TIMEOUT_SECONDS)

    def pid(self) -> int | None:
        """Return the pid of the running server, or None when it does not run."""
        _reap()
        recorded = _recorded_identity(self.pid_file)
        if recorded is None:
            return None
        pid, start_ticks = recorded
        return pid if _identity(Path(f"/proc/{pid}/stat")) == (pid, start_ticks) else None

    def is_running(self) -> bool:
        return self.pid() is not None

    def was_started(self) -> bool:
        """Return whether a start is on record, be the server alive or dead."""
        return _recorded_identity(self.pid_file) is not None

    def stop(self, *, grace_seconds: float = 20.0, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server and what it left behind in its session; harmless when it does not run."""
        recorded = _recorded_identity(self.pid_file)
        if recorded is not None:
            leader = self.ask_to_end(how)
            if leader is not None:
                _wait(lambda: not self.is_running(), grace_seconds)
            self._end_session(recorded[0], leader_was_ours=leader is not None)
        self.pid_file.unlink(missing_ok=True)

    def ask_to_end(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """Signal the server, without waiting; return its pid, None when it does not run."""
        leader = self.send(how)
        self.send(signal.SIGCONT)  # a paused one would not hear the other
        return leader

    def send(self, number: signal.Signals) -> int | None:
        """Send the server a signal; return its pid, None when it does not run."""
        leader = self.pid()
        if leader is not None:
            _signal(leader, number)
        return leader

    def pause(self) -> None:
        """Send SIGSTOP; return when every thread stands still, or when there is nothing to pause."""
        self.send(signal.SIGSTOP)
        _wait(lambda: self.is_paused() or not self.is_running(), _PAUSE_TIMEOUT_SECONDS)

    def resume(self) -> None:
        """Send SIGCONT; harmless when it runs, or is dead."""
        self.send(signal.SIGCONT)

    def is_paused(self) -> bool:
        pid = self.pid()
        if pid is None:
            return False
        return all(_state(thread / "stat") in "TX" for thread in Path(f"/proc/{pid}/task").iterdir())

    def _end_session(self, session: int, *, leader_was_ours: bool) -> None:
        """End the children of a server that was killed from outside; they are ours when they work in our directory."""
        members = [
            member for member in _session_members(session) if leader_was_ours or _works_in(member, self.directory)
        ]
        for member in members:
            _signal(member, signal.SIGKILL)
        _wait(lambda: not any(_is_alive(member) for member in members), _KILL_TIMEOUT_SECONDS)

    def clear_leftovers(self) -> None:
        """End the children of a server that was killed, which may hold its ports; nothing when it runs."""
        if not self.is_running():
            self.stop()

    def log_tail(self) -> str:
        """Return the last lines of the log, for a person who has to see why it died."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - 16_384))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def wait_until(self, is_ready: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Wait for the server to be ready.

        Raises:
            TransientError: it died, or was not ready in time; the end of its log is in the message.
        """
        ready = _wait(lambda: not self.is_running() or is_ready(), timeout_seconds)
        if not ready:
            raise TransientError(
                f"{self.name} is not ready after {timeout_seconds:.0f} s; see {self.log_file}\n{self.log_tail()}"
            )
        if not self.is_running():
            raise TransientError(f"{self.name} ended while starting; see {self.log_file}\n{self.log_tail()}")


def _reap() -> None:
    """Release our own dead children: while they are zombies, their pid counts as taken."""
    _started[:] = [process for process in _started if process.poll() is None]


def _wait(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _recorded_identity(pid_file: Path) -> tuple[int, int] | None:
    """Return what `start` put on record, when that was since the machine came up: ticks count from there."""
    try:
        stat, boot_id = pid_file.read_text().splitlines()
    except (FileNotFoundError, ValueError):
        return None
    return _parse_identity(stat) if boot_id == _BOOT_ID.read_text().strip() else None


def _identity(stat_file: Path) -> tuple[int, int] | None:
    """Return (pid, start time in clock ticks since boot) of a process; None for the dead and for zombies."""
    try:
        return _parse_identity(stat_file.read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def _parse_identity(line: str) -> tuple[int, int] | None:
    pid, after_name = int(line.split(" ", 1)[0]), line.rpartition(")")[2].split()
    return None if after_name[0] in "ZX" else (pid, int(after_name[19]))


def _state(stat_file: Path) -> str:
    """Return the kernel's letter for a thread; X for one that is gone."""
    try:
        return stat_file.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def _session_members(session: int) -> list[int]:
    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session and pid != os.getpid():
                members.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return members


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(directory.resolve())
    except OSError:
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    return _identity(Path(f"/proc/{pid}/stat")) is not None
