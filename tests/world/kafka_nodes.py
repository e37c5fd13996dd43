"""Kill a node of a Kafka server."""

import signal

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import becomes_free

_PORTS_FREE_SECONDS = 10.0


def kill_node(server: KafkaServer, node: int) -> None:
    """Send SIGKILL: what was not written is gone. Ends a paused node too, and returns when its ports are free."""
    server.process(node).stop(how=signal.SIGKILL)
    for port in server.layout.ports_of(node):
        becomes_free(port, _PORTS_FREE_SECONDS)
