"""A server that takes metrics as OpenTelemetry's exporters send them over HTTP."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from makewhole.stack.ports import LOOPBACK

Labels = frozenset[tuple[str, str]]


@dataclass
class TakenMetrics:
    """The newest value of each gauge that a server has taken, by name and labels."""

    port: int = 0
    gauges: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def of(self, name: str, **labels: str) -> float | None:
        """The newest value with exactly these labels; None: none was taken."""
        return self.gauges.get((name, frozenset(labels.items())))

    def take(self, body: bytes) -> None:
        """Note what a request holds."""
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.gauge.data_points:
                    labels = frozenset((label.key, label.value.string_value) for label in point.attributes)
                    self.gauges[metric.name, labels] = point.as_double or float(point.as_int)


@contextmanager
def metrics_server() -> Iterator[TakenMetrics]:
    """Take metrics on a port of its own."""
    taken = TakenMetrics()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    taken.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
