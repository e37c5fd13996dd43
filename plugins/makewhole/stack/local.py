"""Start, end and describe the local stack as a whole."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from makewhole.journal.database import migrate
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.private_files import make_private_folder
from makewhole.signing.key_files import ensure_key_files
from makewhole.stack import settings as stack_settings
from makewhole.stack.airflow_server import COMPONENTS, AirflowServer
from makewhole.stack.environment import (
    DATABASES,
    JOURNAL_DATABASE,
    PEOPLES_DATABASE,
    airflow_url,
    signing_folder,
)
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import ExistingPostgres, create_database, postgres
from makewhole.stack.process import ServerProcess

_NEEDED_BYTES = 512 * 1024**2
_SCARCE_BYTES = 128 * 1024**2
_PATIENCE_SECONDS = 15.0  # a busy machine's server may miss one deadline; one that hangs misses them all

Report = Callable[[str], None]


class Health(StrEnum):
    """The states of a part."""

    HEALTHY = "healthy"
    NOT_ANSWERING = "not answering"
    DEAD = "dead"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class StackPart:
    """One part of the stack. `remedy` is empty when there is nothing to do."""

    name: str
    health: Health
    pid: int | None
    log: Path | None
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class StackState:
    """The stack as it is now; addresses are None when there was never a stack in `home`."""

    home: Path
    parts: tuple[StackPart, ...]
    free_bytes: int
    storage: Path
    bootstrap: str | None = None
    dsn: str | None = field(default=None, repr=False)
    url: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def is_up(self) -> bool:
        return all(part.health is Health.HEALTHY for part in self.parts)

    @property
    def is_down(self) -> bool:
        return all(part.health is Health.STOPPED for part in self.parts)

    @property
    def disk_is_scarce(self) -> bool:
        return self.free_bytes < _SCARCE_BYTES


def up(home: Path, *, kafka_nodes: int | None = None, new_ports: bool = False, report: Report = lambda _: None) -> None:
    """Start what does not run, and wait until all of it is healthy. Harmless when it is.

    Raises:
        PermanentError: it cannot run here; the message says what to do.
        TransientError: a part did not come up.
    """
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home, report), _explaining_full_disk(home):
        _refuse_full_disk(home)
        _refuse_other_size(home, kafka_nodes)
        if new_ports:
            _change_ports(home)
        stack_settings.load_or_create(home)
        make_private_folder(home / "storage")
        ensure_key_files(signing_folder(home))
        _start(home, kafka_nodes or 1, report)


def down(home: Path, *, report: Report = lambda _: None) -> None:
    """End all parts; data, ports and passwords stay. Harmless when nothing runs."""
    if not home.exists():
        return
    with _locked(home, report):
        report("ending Airflow")
        AirflowServer(home).stop()
        report("ending Kafka")
        KafkaServer(home / "kafka").stop()
        report("ending PostgreSQL")
        postgres(home / "postgres").stop()


def stack_state(home: Path) -> StackState:
    """Look at every part now. One that runs and does not answer is asked again for a while."""
    settings = stack_settings.load(home)
    existing_folder = next(folder for folder in [home, *home.parents] if folder.exists())
    free_bytes = shutil.disk_usage(existing_folder).free
    parts = _parts(home)
    state = StackState(home=home, parts=parts, free_bytes=free_bytes, storage=home / "storage")
    if settings is None or not (home / "kafka" / "cluster.json").exists():
        return state
    return StackState(
        home=home,
        parts=parts,
        free_bytes=free_bytes,
        storage=state.storage,
        bootstrap=KafkaServer(home / "kafka").bootstrap,
        dsn=postgres(home / "postgres").dsn(PEOPLES_DATABASE),
        url=airflow_url(settings),
        user="admin",
        password=settings.passwords["admin"],
    )


def _parts(home: Path) -> tuple[StackPart, ...]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        parts = (*_kafka_parts(home), _postgres_part(home), *_airflow_parts(home))
        waiting = any(part.health is Health.NOT_ANSWERING for part in parts)
        if not waiting or time.monotonic() > deadline:
            return parts
        time.sleep(1)


def _start(home: Path, kafka_nodes: int, report: Report) -> None:
    kafka, database, airflow = (
        KafkaServer(home / "kafka", kafka_nodes),
        postgres(home / "postgres"),
        AirflowServer(home),
    )
    report("starting PostgreSQL")
    database.launch()
    report("starting Kafka")
    kafka.launch()
    database.wait_ready()
    report(f"PostgreSQL answers at {_address(database.dsn(PEOPLES_DATABASE))}")
    for name in DATABASES:
        create_database(database.dsn, name)
    migrate(database.dsn(JOURNAL_DATABASE))
    report("preparing Airflow's database")
    airflow.migrate()
    report("starting Airflow")
    airflow.launch()
    kafka.wait_ready()
    report(f"Kafka answers at {kafka.bootstrap}")
    airflow.wait_ready()
    report(f"Airflow answers at {airflow_url(stack_settings.load_or_create(home))}")


def _kafka_parts(home: Path) -> list[StackPart]:
    server = KafkaServer(home / "kafka")
    is_healthy = server.is_healthy()
    nodes = range(1, server.nodes + 1)
    return [_part(f"kafka-{node}", server.process(node), is_healthy=is_healthy) for node in nodes]


def _postgres_part(home: Path) -> StackPart:
    server = postgres(home / "postgres")
    if isinstance(server, ExistingPostgres):
        health = Health.HEALTHY if server.is_healthy() else Health.NOT_ANSWERING
        return StackPart(
            name="postgres", health=health, pid=None, log=None, remedy="" if server.is_healthy() else _FOREIGN
        )
    process = ServerProcess(name="postgres", directory=home / "postgres")
    return _part("postgres", process, is_healthy=server.is_healthy())


_FOREIGN = "this server is not the stack's own: start it, or unset MAKEWHOLE_POSTGRES_DSN"


def _airflow_parts(home: Path) -> list[StackPart]:
    server = AirflowServer(home)
    states = server.health()
    return [
        _part(f"airflow-{name}", server.process(name), is_healthy=states.get(name) == "healthy") for name in COMPONENTS
    ]


def _part(name: str, process: ServerProcess, *, is_healthy: bool) -> StackPart:
    pid = process.pid()
    if pid is not None:
        health = Health.HEALTHY if is_healthy else Health.NOT_ANSWERING
        remedy = "" if is_healthy else f"wait a little; when it stays, see {process.log_file}, then `makewhole down`"
    elif process.was_started():
        health, remedy = Health.DEAD, f"see {process.log_file}; `makewhole up` starts it again"
    else:
        health, remedy = Health.STOPPED, "`makewhole up` starts it"
    return StackPart(name=name, health=health, pid=pid, log=process.log_file, remedy=remedy)


def _change_ports(home: Path) -> None:
    if any(part.pid for part in stack_state(home).parts):
        raise RefusedError(
            "ports change only while nothing runs; `makewhole down` first, then `makewhole up --new-ports`"
        )
    KafkaServer(home / "kafka").change_ports()
    server = postgres(home / "postgres")
    if not isinstance(server, ExistingPostgres):
        server.change_port()
    stack_settings.change_ports(home)


def _refuse_other_size(home: Path, kafka_nodes: int | None) -> None:
    kafka = KafkaServer(home / "kafka")
    if kafka_nodes is not None and kafka.exists() and kafka.nodes != kafka_nodes:
        raise RefusedError(
            f"the Kafka in {home} has {kafka.nodes} node(s), not {kafka_nodes}; leave --kafka-nodes out, use another "
            f"MAKEWHOLE_HOME, or `makewhole down` and remove {home / 'kafka'}, its topics with it"
        )


def _refuse_full_disk(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < _NEEDED_BYTES:
        raise PermanentError(
            f"only {free // 1024**2} MiB are free at {home}, {_NEEDED_BYTES // 1024**2} are needed to start; "
            "free some, or name a folder on another disk in MAKEWHOLE_HOME"
        )


@contextmanager
def _explaining_full_disk(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise PermanentError(
            f"the disk of {home} is full; free some space and run `makewhole up` again, "
            "or name a folder on another disk in MAKEWHOLE_HOME"
        ) from error


@contextmanager
def _locked(home: Path, report: Report) -> Iterator[None]:
    """Allow one `up` or `down` at a time. The kernel releases the lock of a process that was killed."""
    with (home / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            report(f"waiting for another `makewhole up` or `down` here (pid {lock.read().strip()})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _address(dsn: str) -> str:
    return dsn.rpartition("@")[2].partition("/")[0]
