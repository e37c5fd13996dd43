"""Test that an address of a schema registry which no client takes is a mistake of its connection."""

import pytest

from makewhole.model.connection import RegistryConnection
from makewhole.model.errors import ConfigurationError
from makewhole.registry import Registry

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("host", ["registry\x7f", "x" * 70_000])
def test_an_address_that_no_client_takes_is_named_without_it(host: str) -> None:
    connection = RegistryConnection(id="registry", url=f"http://{host}:8081", login="u", password="SECRET")

    with pytest.raises(ConfigurationError) as caught:
        Registry(connection).newest("orders-value")

    assert str(caught.value) == (
        "connections: registry: is no address of a schema registry. Correct its host, port and path"
    )
