"""Start a Spark standalone cluster on this machine: a master, and workers that share nothing but the storage."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from makewhole.config.connection_text import FILE_VARIABLE, variable_of

LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_SECONDS_TO_LOG = 0.3
_EXECUTOR = "CoarseGrainedExecutorBackend"


def spark_home() -> Path:
    """Return the folder of the pyspark package, which has all that a master and a worker need."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def until(holds: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
    """Wait until a condition holds, looking at it again and again.

    Raises:
        TimeoutError: it did not; the message has what `what` says then.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what()}")
        time.sleep(0.05)


@dataclass
class Server:
    """A server of a cluster: a process of Java with a folder of its own, which is also its home."""

    folder: Path
    command: list[str]
    more_environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.defpath + os.pathsep + str(Path(shutil.which("java") or "java").parent),
            "HOME": str(self.folder),
            **self.more_environment,
        }
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    @property
    def log_file(self) -> Path:
        return self.folder / "log"

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def stop(self) -> None:
        """End the process and all below it, by their pids."""
        tree = self.processes() if self.process.poll() is None else []
        for process in tree:
            _kill(process)
        self.process.wait(10)

    def processes(self) -> list[psutil.Process]:
        """Return its process and all below it."""
        return [psutil.Process(self.process.pid), *_below(self.process.pid)]


@dataclass(frozen=True, kw_only=True)
class Executor:
    """A running executor: its process, and the folder in which it works."""

    pid: int
    folder: Path

    def stop_in_task(self) -> bool:
        """Stop it in the middle of a task; return whether it stands still. Between tasks it goes on."""
        if not self._has_task():
            return False
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(_SECONDS_TO_LOG)
        if not self._has_task():
            os.kill(self.pid, signal.SIGCONT)
        return self._has_task()

    def _has_task(self) -> bool:
        """Return whether it runs a task. It says that one is finished before it reports to the driver."""
        log = self.folder / "stderr"
        text = log.read_text(errors="replace") if log.exists() else ""
        return text.count("Executor: Running task ") > text.count("Executor: Finished task ")

    def kill(self) -> None:
        """Kill it, and the Python workers below it."""
        for process in [*_below(self.pid), psutil.Process(self.pid)]:
            _kill(process)


class SparkCluster:
    """A master and two workers with one core and 2 GiB each. `stop` ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        master = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        self._master = _spark_server(folder / "master", master)
        self._workers: list[Server] = []
        try:
            self._start_workers()
        except BaseException:
            self.stop()
            raise

    def _start_workers(self) -> None:
        until(lambda: self._url() is not None, _START_SECONDS, lambda: self._master.log)
        for number in range(2):
            self._workers.append(self._worker(self.folder / f"worker-{number}"))
        until(self._is_whole, _START_SECONDS, lambda: "\n".join(server.log for server in self._servers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _worker(self, folder: Path) -> Server:
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        size = ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / "work")]
        connections = {FILE_VARIABLE: str(folder / "connections.json")}
        return _spark_server(folder, [*worker, *size, self.master], connections)

    @property
    def master(self) -> str:
        """The URL by which applications are submitted."""
        url = self._url()
        assert url is not None
        return url

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the master and the workers; those of applications are below them."""
        return tuple(server.process.pid for server in self._servers)

    def _url(self) -> str | None:
        match = re.search(rf"Starting Spark master at (spark://{LOOPBACK}:\d+)", self._master.log)
        return match and match[1]

    def _is_whole(self) -> bool:
        return all("Successfully registered with master" in worker.log for worker in self._workers)

    @property
    def _servers(self) -> list[Server]:
        return [self._master, *self._workers]

    def know(self, connections: Mapping[str, str]) -> None:
        """Write the connections into the file of each worker."""
        for worker in self._workers:
            write_connections(worker.folder / "connections.json", connections)

    def know_environment(self) -> None:
        """Give each worker the connections of this process."""
        self.know(connections_here())

    def executors(self) -> list[Executor]:
        """Return the running executors, in the order of the workers."""
        processes = [process for worker in self._workers for process in _below(worker.process.pid)]
        return list(_executors(processes))

    def processes(self) -> list[psutil.Process]:
        """Return all processes of the cluster."""
        return [process for server in self._servers for process in server.processes()]

    def stop(self) -> None:
        """End everything."""
        for server in reversed(self._servers):
            server.stop()


def connections_here() -> Mapping[str, str]:
    """Return id and text of the connections in this process's environment."""
    prefix = variable_of("")
    given = {name: text for name, text in os.environ.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix).lower(): text for name, text in given.items()}


def write_connections(file: Path, connections: Mapping[str, str]) -> None:
    """Write a file of connections that its owner alone can read."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(dict(connections)))


def _spark_server(folder: Path, arguments: list[str], more_environment: Mapping[str, str] | None = None) -> Server:
    """Start a server of Spark; `arguments` begin with its class."""
    (folder / "local").mkdir(parents=True)
    environment = {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    command = [str(spark_home() / "bin" / "spark-class"), *arguments]
    return Server(folder, command, environment | dict(more_environment or {}))


def _executors(processes: list[psutil.Process]) -> Iterator[Executor]:
    for process in processes:
        try:
            if any(_EXECUTOR in part for part in process.cmdline()):
                yield Executor(pid=process.pid, folder=Path(process.cwd()))
        except psutil.Error:
            continue


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
