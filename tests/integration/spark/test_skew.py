"""Test windows whose data are not spread evenly: one partition with nearly all, and one key with very many copies."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.window.context import WindowContext
from tests.integration.spark.test_numbers_of_buckets import differing, window_report
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.on_spark, pytest.mark.timeout(600)]

COPIES = int(os.environ.get("MAKEWHOLE_COPIES", "100000"))
MOST_MIB = 700 + 1_600 * COPIES // 1_000_000
_ALL_AT_ONCE = {"queue.buffering.max.messages": 2 * COPIES}


def workers() -> Iterator[Path]:
    """Yield the folders in /proc of the Python workers below this process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.worker" in (folder / "cmdline").read_bytes() and os.getpid() in ancestors(folder):
                yield folder
        except OSError:
            continue


def ancestors(folder: Path) -> Iterator[int]:
    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    if parent > 1:
        yield parent
        yield from ancestors(Path(f"/proc/{parent}"))


def peak_mib() -> int:
    """Return the most memory that a Python worker ever had."""
    status = [(folder / "status").read_text() for folder in workers()]
    return max(int(text.partition("VmHWM:")[2].split()[0]) for text in status) // 1024


def judged_in(shop: ReconciledShop, buckets: int) -> WindowContext:
    shop.buckets = buckets
    return shop.judge_and_ask_the_gate()


def test_a_partition_with_nearly_all_records_gives_the_same_report(shop: ReconciledShop) -> None:
    add_partitions(shop.admin, shop.topic, 8)
    shop.partitions = 8
    made = orders(range(4_000))
    shop.write("outbox", made)
    shop.send(made[:200])
    shop.partitions = 1  # all others lie in the first one
    shop.send(made[400:])
    shop.write("warehouse", [*made[:1_000], *made[1_100:], *made[1_200:1_210]])

    reports = [window_report(shop, judged_in(shop, buckets)) for buckets in (1, 16)]

    assert differing(*reports) == []
    assert reports[0]["findings"].count("\n") == 200 + 200 + 100 + 10 - 1


def test_a_key_with_very_many_copies_is_judged_in_bounded_memory(shop: ReconciledShop) -> None:
    """One order is in the topic and in the store a hundred thousand times, and as many records have no key."""
    made = orders(range(100))
    shop.trade(made)
    shop.send([made[7]] * (COPIES - 1), settings=_ALL_AT_ONCE)
    shop.send([{**made[8], "id": None}] * (COPIES // 2), settings=_ALL_AT_ONCE)
    shop.sql(
        "insert into warehouse select id, number, region, amount, at from warehouse, generate_series(2, %s) "
        "where id = 'O7'",
        COPIES,
    )

    contexts = [judged_in(shop, buckets) for buckets in (2, 16)]

    reports = [window_report(shop, context) for context in contexts]
    assert differing(*reports) == []
    assert shop.found(contexts[0], LEDGER_HOP)["O7"][0] == "duplicate"
    assert shop.found(contexts[0], STORE_HOP) == {"O7": ("duplicate", "upstream_duplicate")}
    assert shop.counts(contexts[0], STORE_HOP).extra_copies == COPIES - 1
    assert shop.manifests(contexts[0])["orders"]["undecodable"] == COPIES // 2
    assert peak_mib() < MOST_MIB
