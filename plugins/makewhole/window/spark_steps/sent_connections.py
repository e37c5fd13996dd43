"""Send the ids of connections in the place of connections: whoever receives a task resolves them where it runs.

A task travels as a pickle, over the network and through files of Spark, so no secret may be in it. With each id goes a
digest of the server that it leads to, without any secret: another machine that knows another server by the same id
would read other rows, and what it did not find there would be judged lost.
"""

import hashlib
import json
import socket
from collections.abc import Mapping
from dataclasses import replace

from makewhole.config.connections import from_environment
from makewhole.kinds import server_of
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError, Problem

ServerDigests = Mapping[str, str]
"""Connection id → digest of the server that it leads to."""


def server_digests(connections: Mapping[str, Connection]) -> ServerDigests:
    """Return the digest of the server of each connection."""
    return {name: _digest(connection) for name, connection in connections.items()}


def resolve(servers: ServerDigests) -> dict[str, Connection]:
    """Return the connections of these ids as this machine knows them.

    Raises:
        ConfigurationError: one is not known here, cannot be understood, or leads to another server.
    """
    connections, problems = dict[str, Connection](), list[Problem]()
    for name, digest in servers.items():
        try:
            connections[name] = from_environment(name)
        except ConfigurationError as error:
            problems += [_here(problem) for problem in error.problems]
        else:
            if _digest(connections[name]) != digest:
                problems.append(_here(_elsewhere(name)))
    if problems:
        raise ConfigurationError(problems)
    return connections


def _digest(connection: Connection) -> str:
    return hashlib.sha256(json.dumps([type(connection).__name__, server_of(connection)]).encode()).hexdigest()


def _here(problem: Problem) -> Problem:
    return replace(problem, file=f"{problem.file} of the Python workers on {socket.gethostname()}")


def _elsewhere(name: str) -> Problem:
    return Problem(
        file="connections",
        path=name,
        found="leads to another server here than where the window was started",
        remedy="Write the same host, port, database, user and options, or the same bootstrap.servers, in both places",
    )
