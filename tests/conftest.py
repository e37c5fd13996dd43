"""Start servers for the tests: each when the first test asks for it, once a session; ended by pid. Carry the tasks of
windows in this process, or on Spark."""

import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import settings

from makewhole.journal.database import migrate
from makewhole.stack.class_archive import short_job_jvm
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import ExistingPostgres, PostgresServer, create_database
from makewhole_spark.carrier import Carrier
from tests.world.databases import Databases
from tests.world.examples import ALL_EXAMPLES, examples
from tests.world.shared_starts import with_shared_starts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.cluster.object_store import ObjectStore
    from tests.world.hdfs_servers import HdfsServers

_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 6 << 30


def _keep_files_in_memory() -> None:
    """Have temporary files in memory where there is enough of it, the servers' among them.

    To make and remove the two databases of a test takes half a second of a core on some disks, and a tenth in memory.
    """
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # it is found once


_keep_files_in_memory()
gc.set_threshold(50_000, 20, 50)  # else a tenth of the time goes into walking over the objects of loaded libraries
os.environ.setdefault("JDK_JAVA_OPTIONS", short_job_jvm())
if not ALL_EXAMPLES:
    # To hand twenty rows from thread to thread takes longer than the work on them.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.pop("COLUMNS", None)  # pytest-xdist hands the terminal's width on; the tests say theirs themselves
# Without a deadline: a machine that does other work, too, is no failure.
settings.register_profile("unhurried", deadline=None, max_examples=examples(100))
settings.load_profile("unhurried")
_FOLDER_PREFIX = "makewhole-tests-"
_JOURNAL_TEMPLATE = "journal_template"

AnyPostgres = PostgresServer | ExistingPostgres


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-spark", action="store_true", help="carry the tasks of every window on Spark")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one process of several start Spark, and the lab's cluster; begin early with histories, which are long."""
    items[:] = with_shared_starts(items, (_starts_spark, lambda item: bool(item.get_closest_marker("histories"))))


def _starts_spark(item: pytest.Item) -> bool:
    asks = "spark" in getattr(item, "fixturenames", ()) or item.config.getoption("on_spark")
    return bool(asks or item.get_closest_marker("on_spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A small session on this machine."""
    from tests.world.spark_session import spark_session

    with spark_session() as session:
        yield session


def is_on_spark(request: pytest.FixtureRequest) -> bool:
    """Return whether the test of a fixture carries its windows on Spark."""
    if request.node.get_closest_marker("in_process"):
        return False
    return bool(request.config.getoption("on_spark") or request.node.get_closest_marker("on_spark"))


@pytest.fixture
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """Where a window's tasks run: in this process, or on Spark for a test that is marked so."""
    if is_on_spark(request):
        from makewhole_spark.spark_carrier import SparkCarrier

        return SparkCarrier(request.getfixturevalue("spark").sparkContext)
    from tests.world.in_process import InProcessCarrier

    return InProcessCarrier()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Where this session's servers live; folders and servers of sessions that were killed are removed."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        if not psutil.pid_exists(int(leftover.name.split("-")[2])):
            _remove(leftover)
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
    yield folder
    _remove(folder)


def _remove(folder: Path) -> None:
    KafkaServer(folder / "kafka").stop()
    PostgresServer(folder / "postgres").stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka(server_folder: Path) -> KafkaServer:
    """A Kafka of one node; `.bootstrap`."""
    server = KafkaServer(server_folder / "kafka")
    server.start()
    return server


@pytest.fixture(scope="session")
def postgres(server_folder: Path) -> AnyPostgres:
    """A PostgreSQL; `.dsn(database)`."""
    if existing := os.environ.get("MAKEWHOLE_POSTGRES_DSN"):
        return ExistingPostgres(existing)
    server = PostgresServer(server_folder / "postgres", is_durable=False, settings={"max_prepared_transactions": "64"})
    server.start()
    return server


@pytest.fixture(scope="session")
def databases(postgres: AnyPostgres) -> Iterator[Databases]:
    """Make and drop databases, on one connection."""
    made = Databases(postgres.dsn)
    yield made
    made.close()


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The URI of an empty database of the test's own."""
    with databases.of_a_test("test") as uri:
        yield uri


@pytest.fixture(scope="session")
def journal_template(postgres: AnyPostgres) -> str:
    """The name of a migrated database that nothing is connected to."""
    name = f"{_JOURNAL_TEMPLATE}_{uuid.uuid4().hex}"
    migrate(create_database(postgres.dsn, name))
    return name


@pytest.fixture
def journal(databases: Databases, journal_template: str) -> Iterator[str]:
    """The URI of a migrated, empty journal of the test's own."""
    with databases.of_a_test("journal", template=journal_template) as uri:
        yield uri


@pytest.fixture(scope="session")
def hdfs(server_folder: Path) -> Iterator["HdfsServers"]:
    """A NameNode and a DataNode."""
    from tests.world.hdfs_servers import HdfsServers

    with HdfsServers(server_folder / "hdfs") as servers:
        yield servers


@pytest.fixture(scope="session")
def s3(server_folder: Path) -> Iterator["ObjectStore"]:
    """An S3 server with a bucket."""
    from tests.integration.cluster.object_store import ObjectStore

    folder = server_folder / "s3"
    folder.mkdir()
    store = ObjectStore.start(folder, "lake-key", "lake-secret")
    yield store
    store.stop()
