"""Kill what publishes at each of its calls: nothing is left half, and nothing is sent or shown twice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.model.errors import CorruptionError
from tests.integration.spark.test_published import certified, keys, manifests, publish, publishing, sent
from tests.world.orders import Order, orders
from tests.world.topics import commit_group
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.in_process]


class KilledError(BaseException):
    """Stands for the end of the process: no handler of errors sees it."""


@contextmanager
def killed(place: str, *, is_after: bool) -> Iterator[None]:
    """End the process right before or after a call."""
    module, _, name = place.rpartition(".")
    real: Callable[..., Any] = getattr(*_owner(module, name))

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_after:
            real(*args, **kwargs)
        raise KilledError

    with mock.patch.object(*_owner(module, name), call), pytest.raises(KilledError):
        yield


def _owner(module: str, name: str) -> tuple[Any, str]:
    import importlib

    try:
        return importlib.import_module(module), name
    except ModuleNotFoundError:
        folder, _, owner = module.rpartition(".")
        return getattr(importlib.import_module(folder), owner), name


CALLS = (
    "makewhole.journal.publications.begin",
    "makewhole.journal.leases.acquire",
    "makewhole.lake.storage.Storage.write_once",  # of the owner
    "makewhole_spark.publish.publish_window.choose_records",
    "makewhole_spark.publish.publish_window.write_records",
    "makewhole.lake.parquet_writer.PackedParquet.append",
    "makewhole.lake.parquet_writer.PackedParquet.close",
    "makewhole.journal.publications.decide",
    "makewhole.publishing.place.show",
    "makewhole.journal.publications.note_visible",
    "makewhole.journal.publications.note_partitions",
    "makewhole.kafka.replay.ReplayWriter.open",
    "makewhole.kafka.replay.ReplayWriter._produce",
    "makewhole.kafka.replay.ReplayWriter.write",
    "makewhole.journal.publications.note_sent",
)


def test_run_that_is_killed_anywhere_leaves_nothing_half_and_nothing_twice(shop: ReconciledShop) -> None:
    """Each call ends the process, before it is made and after it, on the way to the end."""
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    with mock.patch("makewhole.publishing.manifest.ROWS_OF_A_CHUNK", 2):
        for call in CALLS:
            for is_after in (False, True):
                with killed(call, is_after=is_after):
                    publish(shop, context)
                seen = keys(folder) if (folder / "manifests").is_dir() and manifests(folder) else []
                assert seen in ([], [order["id"] for order in made]), call
                in_topic = [key for key, _ in sent(shop, name)]
                assert in_topic == [order["id"] for order in made][: len(in_topic)], call
        shop.delete_group(f"publish-shop-orders-{name}")  # its offsets expire after a week
        publish(shop, context)
    assert [key for key, _ in sent(shop, name)] == keys(folder) == [order["id"] for order in made]
    files = sorted(str(path.relative_to(folder)) for path in (folder / "data").rglob("*.parquet"))
    assert files == [file["path"] for file in manifests(folder)[1]["files"]]


def test_marker_that_is_not_what_the_journal_knows_stops_the_sending(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    made: list[Order] = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    publish(shop, context)
    shop.journal_sql("update makewhole.publication set sent_chunks = 0, sent_ends = '{}'")
    commit_group(shop.bootstrap, f"publish-shop-orders-{name}", MARKER_TOPIC, 7)
    with pytest.raises(CorruptionError, match=r"says that 7 chunks were sent into .*, and the journal 0: another"):
        publish(shop, context)
    shop.delete_group(f"publish-shop-orders-{name}")
    publish(shop, context)  # by the headers of the records
    assert len(sent(shop, name)) == 2
    assert shop.journal_sql("select sent_chunks from makewhole.publication") == [(1,)]
