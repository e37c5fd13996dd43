"""Switch what a broker lets a transactional producer do."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

Unverified = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def unverified(admin: AdminClient) -> Unverified:
    """Inside it, brokers take transactional batches of transactions that no coordinator knows, as before KIP-890."""

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    @contextmanager
    def switch() -> Iterator[None]:
        alter(AlterConfigOpType.SET)
        try:
            yield
        finally:
            alter(AlterConfigOpType.DELETE)

    return switch
