"""A JVM with Java's own clients."""

from collections.abc import Iterator

import pytest

from tests.world.java_clients import JavaClients


@pytest.fixture(scope="session")
def java() -> Iterator[JavaClients]:
    with JavaClients() as clients:
        yield clients
