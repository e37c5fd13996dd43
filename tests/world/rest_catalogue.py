"""Start a REST catalogue of Iceberg on this machine: the server with which Iceberg tests its own clients.

It keeps its tables in a file of SQLite.
"""

from pathlib import Path
from urllib.request import urlopen

from bench.cluster.spark_cluster import LOOPBACK, Server, spark_home, until
from makewhole.model.closing import ClosingContext
from makewhole.stack.maven_jars import JarFolder, java
from makewhole.stack.ports import free_ports

_VERSION = "1.9.2"
_JARS = JarFolder(
    name=f"iceberg-rest-catalogue-{_VERSION}",
    title="the jars of Iceberg's REST catalogue",
    artifacts=(),
    hashes=Path(__file__).with_name("rest_catalogue_jars.sha256"),
    module=Path(__file__).with_name("rest_catalogue.ivy.xml"),
)
_MAIN = "org.apache.iceberg.rest.RESTCatalogServer"
_START_SECONDS = 60.0


def iceberg_jars() -> str:
    """Return the class path of Iceberg's own library, with the server of its REST catalogue."""
    jars = spark_home() / "jars"
    hadoop = [str(next(jars.glob(f"hadoop-client-{part}-*.jar"))) for part in ("api", "runtime")]
    return ":".join([str(_JARS.provide() / "*"), *hadoop])


class RestCatalogue(ClosingContext):
    """A REST catalogue whose warehouse is a folder. A context manager; it is ended by its pid."""

    def __init__(self, folder: Path) -> None:
        [self._port] = free_ports(1)
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        settings = {
            "CATALOG_WAREHOUSE": str(self.warehouse),
            "CATALOG_URI": f"jdbc:sqlite:{folder / 'rest.db'}",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_REST_PORT": str(self._port),
        }
        command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", iceberg_jars(), _MAIN]
        self._server = Server(folder, command, settings)
        try:
            until(self._answers, _START_SECONDS, lambda: self._server.log)
        except BaseException:
            self.close()
            raise

    @property
    def uri(self) -> str:
        """The address, as clients name it."""
        return f"http://{LOOPBACK}:{self._port}/"

    def close(self) -> None:
        """End it."""
        self._server.stop()

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.uri}v1/config", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
