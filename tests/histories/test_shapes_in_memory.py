"""Test that random changes of the rows of a store in memory, a kind that is installed, are found and repaired.

make histories HISTORIES_ARGS="tests/histories/test_shapes_in_memory.py --histories 1000 --seed 1"
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.other_kinds import installed_kinds
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.histories.shapes.changes import OF_ROWS, TYPES, Change, draw_day
from tests.histories.shapes.formats import FORMATS
from tests.integration.memory.memory_shop import MemoryShop, in_order
from tests.memory.server import MemoryServer
from tests.world.environment import enter, service_environment
from tests.world.installed import INSTALLED
from tests.world.kept_sessions import kept_sessions
from tests.world.pipeline_file import Settings, flow, store, topic
from tests.world.shop import STORE_HOP
from tests.world.topics import delete_topics, make_topic

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

_COLUMNS = {
    "id": "text",
    "number": "bigint",
    "region": "text",
    "amount": "numeric",
    "at": "timestamp with time zone",
    "due": "text",
    "is_paid": "boolean",
    "remark": "text",
}
_VERDICTS = {
    Change.ROW_LOST: "missing",
    Change.ROW_REPEATED: "duplicate",
    Change.ROW_CHANGED: "mismatched",
    Change.ROW_ADDED: "unexpected",
}
_REPAIRS: Settings = {
    "missing": "upsert",
    "duplicate": "quarantine",
    "mismatched": "upsert",
    "unexpected": "quarantine",
}


@pytest.fixture
def shop(
    carrier: Carrier, kafka: KafkaServer, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MemoryShop]:
    """A shop whose store is a table in memory; of PostgreSQL it has the journal alone."""
    monkeypatch.syspath_prepend(str(INSTALLED))
    installed_kinds.cache_clear()
    with MemoryServer() as server, kept_sessions():
        shop = MemoryShop(
            carrier=carrier,
            bootstrap=kafka.bootstrap,
            dsn="",
            journal=journal,
            folder=tmp_path,
            server=server,
            database=f"shop_{uuid.uuid4().hex}",
        )
        enter(monkeypatch, {**service_environment(shop, tmp_path), "AIRFLOW_CONN_DB": server.described(shop.database)})
        yield shop
        delete_topics(shop.admin, [shop.topic])
    installed_kinds.cache_clear()


def test_random_changes_of_rows_in_memory_are_found_and_repaired(seed: int, shop: MemoryShop) -> None:
    record_format, day = Random(seed).choice(FORMATS), draw_day(seed, OF_ROWS)
    shop.partitions = Random(seed).randint(1, 3)
    make_topic(shop.admin, shop.topic, shop.partitions)
    for name in ("warehouse", "expected"):
        shop.make_table(name, _COLUMNS)
    for name, content in record_format.files.items():
        (shop.file.parent / name).write_bytes(content)
    shop.describe(
        has_ledger=False,
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        hop={"compensation": flow(_REPAIRS)},
        more_points={
            "orders": topic("log", shop.topic, **{"key": record_format.key, **record_format.settings}),
            "warehouse": store("db", "warehouse"),
        },
        is_observing=True,
    )
    shop.send_values(
        (record_format.record_key(record), record_format.value(record), record_format.headers(record))
        for record in day.records
    )
    shop.write("warehouse", day.rows)
    shop.write("expected", day.repaired_rows)

    context = shop.judge_and_ask_the_gate()

    verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
    assert verdicts == {key: _VERDICTS[change] for key, change in day.changes.items()}, record_format.name
    if day.changes:
        assert plan_window(context).plan is not None
        compensate_window(context, lambda _: None)
        verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.certify(context).state.value == "certified"
    assert shop.rows() == in_order(shop.placed("expected").values())
