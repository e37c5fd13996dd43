"""Number and name every call of a runner to the outside: PostgreSQL, Kafka, the payload file.

Nothing in the product knows of it. The clients are wrapped where the product takes hold of them, in the process of the
runner alone, and before and after each call is a *point* where something may happen to it.
"""

import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import confluent_kafka
import confluent_kafka.admin
import fsspec
import psycopg2
from aiokafka.conn import AIOKafkaConnection
from psycopg2 import extensions, sql

from makewhole.sql import load_queries, sql_root
from tests.crash.runners.file_calls import watch_files
from tests.crash.runners.storage_calls import watch_storage

_T = TypeVar("_T")
_ANSWER_SECONDS = 60.0
_CLIENTS = {
    confluent_kafka.Producer: "producer",
    confluent_kafka.Consumer: "consumer",
    confluent_kafka.admin.AdminClient: "admin",
}
_TABLES = re.compile(
    r"\b(?:from|join|into|update|table|copy) (?:if (?:not )?exists )?(?!t\.)"
    r"([a-z_]+\.[a-z_]+|pg_[a-z_]+|iceberg_[a-z_]+)\b",
    re.IGNORECASE,
)
_IDLE = "idle_in_transaction_session_timeout"
_LASTING = re.compile(
    r"(journal|target|catalog): commit|producer: .*|admin: create.*|storage: .*|files: (mkdir|link|rename|unlink)|"
    r"store: (write|link|move|remove).*"
)


def load_late_modules() -> list[ModuleType]:
    """Return the product's modules, each loaded: some are only when they are first asked for something."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("makewhole.")]
    for module in modules:
        vars(module)
    return modules


class Step(NamedTuple):
    """A call that is about to be made. `port` is the local one of the connection it goes over; 0: not known, or new.

    `touches` are the tables that a statement names; of anything else than a statement, its name.
    """

    name: str
    port: int = 0
    touches: tuple[str, ...] = ()


def may_last(step: str) -> bool:
    """Return whether the durable state can be another after a step: of a transaction, only its commit is seen from
    outside.

    The kills, after which the state is read at every point, hold this against what is really there.
    """
    return _LASTING.fullmatch(step) is not None


class Watcher(Protocol):
    """Receive every step, before and after it."""

    def before(self, step: Step) -> None: ...

    def after(self, step: Step) -> None: ...


class ClientWrapper:
    """Have every client of this process report its calls to a watcher. `idle_ms`: after so long the server ends the
    transaction of a session whose runner stands still, instead of the product's own, longer patience."""

    def __init__(self, watcher: Watcher, idle_ms: int | None = None) -> None:
        self.watcher, self.idle_ms = watcher, idle_ms
        self.last = ""

    def install(self) -> None:
        """Wrap the clients, in this process, for good."""
        for module in load_late_modules():
            for attribute, value in list(vars(module).items()):
                if isinstance(value, type) and value in _CLIENTS:
                    setattr(module, attribute, _maker(self, value))
        psycopg2.connect = self._connecting(psycopg2.connect)
        AIOKafkaConnection.connect = self._awaiting(AIOKafkaConnection.connect, lambda: "connect")
        AIOKafkaConnection.send = self._awaiting(AIOKafkaConnection.send, lambda request, *_: type(request).__name__)
        fsspec.open = self._opening(fsspec.open)
        fsspec.core.url_to_fs = self._resolving(fsspec.core.url_to_fs)
        watch_files(self)
        watch_storage(self)

    def named(self, name: str, work: Callable[[], _T], *, touches: str, is_repeatable: bool) -> _T:
        """Do the work of a step by its name; one that `is_repeatable` and comes again is the same step."""
        if is_repeatable and name == self.last:
            return work()
        return self.call(Step(name, touches=(touches,)), work)

    def call(self, step: Step, work: Callable[[], _T]) -> _T:
        """Do the work of a step, and report it before and after."""
        self.last = step.name
        self.watcher.before(step)
        try:
            return work()
        finally:
            self.watcher.after(step)

    def _awaiting(self, really: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
        """Wrap requests that go out from an event loop, one after the other. The same one again is the same step:
        how many pages an answer has depends on how the log lies, and all of them are only read."""

        async def awaiting(connection: AIOKafkaConnection, *arguments: Any, **options: Any) -> Any:
            name = f"raw: {name_of(*arguments)}"
            if name == self.last:
                return await really(connection, *arguments, **options)
            self.last = name
            step = Step(name, touches=(name,))
            self.watcher.before(step)
            try:
                return await really(connection, *arguments, **options)
            finally:
                self.watcher.after(step)

        return awaiting

    def _connecting(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def connect(dsn: str = "", **options: Any) -> Any:
            """The library of the catalogue gives the parts of the name one by one."""
            database = extensions.parse_dsn(dsn).get("dbname", "")
            kind = "journal" if "journal" in database else "target" if dsn else "catalog"
            connection = self.call(
                Step(f"{kind}: connect"), lambda: really(dsn, connection_factory=_Connection, **options)
            )
            connection.wrapper, connection.kind = self, kind
            return connection

        return connect

    def _opening(self, really: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def opened(*arguments: Any, **options: Any) -> Iterator[Any]:
            file = really(*arguments, **options)
            with self.call(Step("storage: open", touches=("storage: open",)), file.__enter__) as handle:
                yield handle

        return opened

    def _resolving(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def url_to_fs(url: str, **options: Any) -> Any:
            filesystem, path = really(url, **options)
            return _Client(self, "storage", filesystem), path

        return url_to_fs


class _Client:
    """Each public method of a client is a step of its own; what it promises for later is waited for."""

    def __init__(self, wrapper: ClientWrapper, kind: str, real: Any) -> None:
        self._wrapper, self._kind, self._real = wrapper, kind, real

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._real, name)
        if name.startswith("_") or not callable(attribute):
            return attribute
        step = Step(f"{self._kind}: {name}", touches=(f"{self._kind}: {name}",))
        return lambda *arguments, **options: self._wrapper.call(
            step, lambda: self._done(name, attribute(*arguments, **options))
        )

    def _done(self, name: str, answer: Any) -> Any:
        """End a call when its effect is there: an administrator's futures are answered, a record is written. What
        a producer gathers to be quick is written at once, so that there is a point between any two records."""
        if name == "produce":
            self._real.flush(_ANSWER_SECONDS)
        if isinstance(answer, Mapping):
            for item in answer.values():
                if isinstance(item, Future):
                    item.exception(_ANSWER_SECONDS)
        return answer

    def __len__(self) -> int:
        return len(self._real)


def _maker(wrapper: ClientWrapper, client: type) -> Callable[..., _Client]:
    kind = _CLIENTS[client]
    return lambda *arguments, **options: _Client(
        wrapper, kind, wrapper.call(Step(f"{kind}: new"), lambda: client(*arguments, **options))
    )


class _Connection(extensions.connection):
    """`with connection:` calls these too."""

    wrapper: ClientWrapper
    kind: str

    def step(self, name: str, statement: str = "") -> Step:
        tables = (f"{self.kind}: {table}" for table in _TABLES.findall(statement.replace('"', "")))
        return Step(f"{self.kind}: {name}", local_port(self), tuple(tables))

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        return super().cursor(*arguments, **{**options, "cursor_factory": _Cursor})

    def commit(self) -> None:
        self.wrapper.call(self.step("commit"), super().commit)

    def rollback(self) -> None:
        self.wrapper.call(self.step("rollback"), super().rollback)

    def close(self) -> None:
        self.wrapper.call(self.step("close"), super().close)


class _Cursor(extensions.cursor):
    """Rows are at the client when `execute` returns, so fetching them is no step."""

    @property
    def owner(self) -> _Connection:
        """The connection that the cursor is of."""
        assert isinstance(self.connection, _Connection)
        return self.connection

    def execute(self, query: Any, parameters: Any = None) -> None:
        text = query.as_string(self.connection) if isinstance(query, sql.Composable) else query
        text = text.decode() if isinstance(text, bytes) else text
        step = self.owner.step(_statement(text), text)
        self.owner.wrapper.call(step, lambda: super(_Cursor, self).execute(query, parameters))
        self._be_impatient(text, parameters)

    def executemany(self, query: Any, rows: Any) -> None:
        step = self.owner.step(_statement(query), query)
        self.owner.wrapper.call(step, lambda: super(_Cursor, self).executemany(query, rows))

    def copy_expert(self, query: Any, file: Any, size: int = 8192) -> None:
        text = query.as_string(self.connection) if isinstance(query, sql.Composable) else query
        step = self.owner.step(_statement(text), text)
        self.owner.wrapper.call(step, lambda: super(_Cursor, self).copy_expert(query, file, size))

    def _be_impatient(self, text: str, parameters: Any) -> None:
        idle_ms = self.owner.wrapper.idle_ms
        if idle_ms is not None and _IDLE in f"{text} {parameters}":
            is_local = "true" in text
            super().execute("select set_config(%s, %s, %s)", (_IDLE, str(idle_ms), is_local))


def local_port(connection: extensions.connection) -> int:
    """Return the local port of a connection; 0 when it is closed."""
    if connection.closed:
        return 0
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as copy:
        return int(copy.getsockname()[1])


def _statement(text: str) -> str:
    """Return the name that sql/queries has for it, or its first words."""
    lines = text.strip().splitlines()
    return _names().get(lines[0]) or " ".join(text.split()[:3])


@cache
def _names() -> dict[str, str]:
    """Map the first line of every statement, which says what it is for, to its name."""
    queries = [load_queries(path.stem) for path in (sql_root() / "queries").glob("*.sql")]
    return {text.splitlines()[0]: name for named in queries for name, text in named.items()}
