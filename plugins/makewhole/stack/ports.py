"""Find free loopback ports, and the process that holds one that is not free."""

import random
import socket
import time

import psutil

LOOPBACK = "127.0.0.1"
# Below the range the kernel gives to outgoing connections, so that a port stays ours between `down` and `up`.
_RANGE = range(20_000, 32_000)
_RELEASE_SECONDS = 2.0


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that nothing listens on now."""
    ports: list[int] = []
    for port in random.sample(_RANGE, k=len(_RANGE)):
        if len(ports) == count:
            break
        if is_free(port):
            ports.append(port)
    return ports


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def becomes_free(port: int, seconds: float = _RELEASE_SECONDS) -> bool:
    """Return whether nothing listens on the port, now or soon: the kernel closes the sockets of a large process some
    time after it counts as dead."""
    deadline = time.monotonic() + seconds
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_open(port: int) -> bool:
    """Return whether something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


def holder(port: int) -> str:
    """Return who listens on the port, for a message to a person: `python (pid 4711)`."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return "another process"
    for connection in connections:
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            return _describe(connection.pid)
    return "another process"


def _describe(pid: int | None) -> str:
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})" if pid else "another process"
    except psutil.Error:
        return "another process"
