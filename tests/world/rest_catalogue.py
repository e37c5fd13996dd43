"""Start a REST catalogue of Iceberg on this machine: the server with which Iceberg tests its own clients.

It keeps its tables in a file of SQLite.
"""

from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from bench.cluster.spark_cluster import spark_home
from makewhole.model.closing import ClosingContext
from makewhole.stack.maven_jars import JarFolder
from makewhole.stack.ports import LOOPBACK, free_ports

_VERSION = "1.9.2"
_JARS = JarFolder(
    name=f"iceberg-rest-catalogue-{_VERSION}",
    title="the jars of Iceberg's REST catalogue",
    artifacts=(),
    hashes=Path(__file__).with_name("rest_catalogue_jars.sha256"),
    module=Path(__file__).with_name("rest_catalogue.ivy.xml"),
)


def iceberg_jars() -> str:
    """Return the class path of Iceberg's own library, with the server of its REST catalogue."""
    jars = spark_home() / "jars"
    hadoop = [str(next(jars.glob(f"hadoop-client-{part}-*.jar"))) for part in ("api", "runtime")]
    return ":".join([str(_JARS.provide() / "*"), *hadoop])


def start_java() -> tuple[Any, Any]:
    """Start a JVM with Iceberg's library; return its gateway, and its process, which the caller ends."""
    [py4j] = (spark_home() / "jars").glob("py4j-*.jar")
    port, token, process = launch_gateway(
        jarpath=str(py4j), classpath=iceberg_jars(), die_on_exit=True, enable_auth=True, return_proc=True
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    return JavaGateway(gateway_parameters=parameters), process


class RestCatalogue(ClosingContext):
    """A REST catalogue whose warehouse is a folder. A context manager; it is ended by its pid.

    The server's own program listens on every address of the machine, so that its parts are put together here.
    """

    def __init__(self, folder: Path) -> None:
        [self._port] = free_ports(1)
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        settings = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "warehouse": str(self.warehouse),
            "uri": f"jdbc:sqlite:{folder / 'rest.db'}",
            "jdbc.schema-version": "V1",
        }
        self._gateway, self._process = start_java()
        try:
            java = self._gateway.jvm
            configuration = java.org.apache.hadoop.conf.Configuration()
            catalog = java.org.apache.iceberg.CatalogUtil.buildIcebergCatalog("rest", settings, configuration)
            rest, jetty = java.org.apache.iceberg.rest, java.org.eclipse.jetty
            servlet = rest.RESTCatalogServlet(rest.RESTCatalogAdapter(catalog))
            context = jetty.servlet.ServletContextHandler(jetty.servlet.ServletContextHandler.NO_SESSIONS)
            context.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
            self._server = jetty.server.Server(java.java.net.InetSocketAddress(LOOPBACK, self._port))
            self._server.setHandler(context)
            self._server.start()
        except BaseException:
            self.close()
            raise

    @property
    def uri(self) -> str:
        """The address, as clients name it."""
        return f"http://{LOOPBACK}:{self._port}/"

    def close(self) -> None:
        """End it."""
        self._gateway.shutdown()
        self._process.kill()
        self._process.wait(10)
