"""Start one Kafka and one PostgreSQL for all workers, each reached directly or through a proxy; make worlds of them."""

import itertools
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg2
from psycopg2.extensions import parse_dsn

from makewhole.journal.database import migrate
from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import LOOPBACK, free_ports
from makewhole.stack.postgres_server import PostgresServer, create_database
from tests.crash.plan.phase_start import case_at_phase_start
from tests.crash.servers.postgres_proxy import PostgresProxy
from tests.crash.servers.world import CrashWorld
from tests.crash.windows.stages import Stages
from tests.lab.servers.proxy import Proxy
from tests.world.topics import commit_group

_SESSION_MS = 120_000


class Servers:
    """A context manager: ended when the block ends. `proxy` stands in front of Kafka; each world has a proxy of its
    own to PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        broker, controller, listener, advertised = free_ports(4)
        self._folder = folder
        self._kafka = KafkaServer(
            folder / "kafka", ports=[broker, controller], settings=_settings(broker, controller, listener, advertised)
        )
        self.proxy = Proxy({advertised: listener})
        self.proxied_bootstrap = f"{LOOPBACK}:{advertised}"
        self._postgres = PostgresServer(folder / "postgres", is_durable=False)
        self._numbers = itertools.count()
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        for server in (self._kafka, self._postgres):
            self._ends.callback(server.stop)
            server.launch()
        for server in (self._kafka, self._postgres):
            server.wait_ready()
        self._ends.callback(self.proxy.stop)
        self.proxy.start()
        self._log_in_quickly()
        migrate(self._database("journal"))
        self._stages = Stages(target=self._database("shop"), folder=self._folder / "stages")
        self._make_internal_topics()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def world(self) -> CrashWorld:
        """Make another worker's world, closed with the servers."""
        number = next(self._numbers)
        folder = self._folder / f"world-{number}"
        folder.mkdir(parents=True)
        proxy = PostgresProxy(target=self._postgres.port, control=folder / "proxy")
        self._ends.callback(proxy.stop)
        proxy.start()
        made = CrashWorld(
            bootstrap=self._kafka.bootstrap,
            proxied_bootstrap=self.proxied_bootstrap,
            journal=self._database(f"journal_{number}", template="journal"),
            target=self._database(f"target_{number}"),
            proxy=proxy,
            folder=folder,
            stages=self._stages,
        )
        self._ends.callback(made.close)
        return made

    def _database(self, name: str, template: str | None = None) -> str:
        return create_database(self._postgres.dsn, name, template=template)

    def _make_internal_topics(self) -> None:
        """Have the first replay ever make Kafka's own topics and the one of the markers; every case shall find them,
        and a group that commits elsewhere."""
        world = self.world()
        with case_at_phase_start(world, "compensate") as case:
            run = world.start(case)
            run.wait("ended")
            assert run.report().outcome == "done", run.report().says
        commit_group(self._kafka.bootstrap, "standing", MARKER_TOPIC, 0)

    def _log_in_quickly(self) -> None:
        """Have the password hashed once and not 4,096 times: every runner logs in more than twenty times."""
        dsn = self._postgres.dsn("postgres")
        with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("set scram_iterations = 1")
            cursor.execute("alter role postgres password %s", (parse_dsn(dsn)["password"],))


def _settings(broker: int, controller: int, listener: int, advertised: int) -> dict[str, object]:
    """Return settings with a second listener, which directs clients through the proxy. On a busy machine the
    only broker shall not be taken for dead: its partitions would get new leader epochs in the middle of a case."""
    return {
        "broker.session.timeout.ms": _SESSION_MS,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller},"
        f"PROXIED://{LOOPBACK}:{listener}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker},PROXIED://{LOOPBACK}:{advertised}",
    }
