"""Test that the pipeline of connectors does what it says it did, and that makewhole finds and repairs just that."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from examples.cdc.contents import rows_of
from examples.cdc.settings import CONTROL_TOPIC, GROUP, LAKE_COORDINATOR, LAKE_GROUP, SLOT, TO_TOPIC, TOPIC, Systems
from examples.cdc.system import Shop
from examples.cdc.verify import Proof, prove
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_lake
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.context import WindowContext, find_pipeline, window_context
from makewhole_spark.carrier import Carrier
from tests.world.environment import enter, service_environment, set_connection
from tests.world.windows import ReconciledShop

FILE = Path(__file__).parents[3] / "examples" / "cdc" / "cdc.yaml"
_ORDERS = 1_000
"""So many that the file's limit (a quarter of the keys) allows what goes wrong."""

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(900)]


@pytest.fixture
def cdc_systems(kafka: KafkaServer, database: str, tmp_path: Path) -> Iterator[Systems]:
    """An empty database; neither topic nor group nor slot."""
    systems = Systems(bootstrap=kafka.bootstrap, dsn=database, folder=tmp_path / "cdc")
    forget(systems)
    yield systems
    forget(systems)


@dataclass(kw_only=True)
class JudgedExample(ReconciledShop):
    """The example's own pipeline file, and a window over all that happened."""

    @property
    def pipeline(self) -> Pipeline:
        return find_pipeline("cdc")

    def window(self) -> WindowContext:
        """Judge a window up to now, when the settle time is over."""
        context = window_context(self.ask(end=datetime.now(UTC)).window, self.pipeline)
        self.let_pass(timedelta(minutes=1))
        self.judge(context)
        self.validate(context)
        return context

    def all_found(self, context: WindowContext) -> set[tuple[str, str, str]]:
        """Return hop, key and verdict of every finding."""
        return {
            (hop.name, key, verdict)
            for hop in context.pipeline.hops
            for key, (verdict, _) in self.found(context, hop.name).items()
        }


@pytest.fixture
def judged(
    cdc_systems: Systems, carrier: Carrier, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> JudgedExample:
    """The environment of the local stack, in which the example's file is judged."""
    systems = cdc_systems
    made = JudgedExample(
        carrier=carrier, bootstrap=systems.bootstrap, dsn=systems.dsn, journal=journal, folder=tmp_path
    )
    variables = service_environment(made, tmp_path, kafka="local_kafka", postgres="local_postgres")
    enter(monkeypatch, variables)
    set_connection(monkeypatch, "local_lake", connection_lake(systems.dsn, systems.lake.folder))
    (tmp_path / "pipelines" / FILE.name).write_text(FILE.read_text("utf-8"))
    return made


@pytest.fixture
def shop(cdc_systems: Systems) -> Iterator[Shop]:
    """The example's driver; Connect is ended at the end."""
    driver = Shop(cdc_systems, seed=3, say=lambda _: None)
    yield driver
    driver.stop()


def forget(systems: Systems) -> None:
    """Remove what the example keeps in Kafka, and its slot, of which a server has one."""
    admin = AdminClient({"bootstrap.servers": systems.bootstrap})
    for deleted in admin.delete_topics([TOPIC, CONTROL_TOPIC]).values():
        with suppress(KafkaException):
            deleted.result(10)
    for deleted in admin.delete_consumer_groups([GROUP, LAKE_GROUP, LAKE_COORDINATOR]).values():
        with suppress(KafkaException):
            deleted.result(10)
    with closing(systems.database()) as database, database.cursor() as cursor:
        cursor.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", (SLOT,)
        )


def findings(proof: Proof) -> set[tuple[str, str, str]]:
    wrong = {(row["hop"], row["key"], row["verdict"]) for row in proof.wrong}
    return wrong | {(TO_TOPIC, key, "duplicate") for key in proof.repeated_in_topic}


def test_what_went_wrong_is_exactly_what_was_written_down_and_found(
    cdc_systems: Systems, shop: Shop, judged: JudgedExample
) -> None:
    """Takes long: Connect is started six times, and its sink commits every twenty seconds. Then a window is judged over
    it, as the demo does."""
    shop.run(_ORDERS)

    proof = prove(cdc_systems)
    planted = rows_of(cdc_systems, "select array[hop, key, verdict] from shop.planted")
    assert {tuple(row) for row in planted} == findings(proof)
    kinds = Counter((hop, verdict) for hop, _, verdict in planted)
    assert set(kinds) == {
        (TO_TOPIC, "missing"),
        (TO_TOPIC, "duplicate"),
        ("orders→warehouse", "missing"),
        ("orders→warehouse", "duplicate"),
        ("orders→warehouse", "mismatched"),
        ("orders→warehouse", "unexpected"),
        ("orders→lake", "missing"),
        ("orders→lake", "duplicate"),
    }

    context = judged.window()
    assert judged.all_found(context) == findings(proof)
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    closed = judged.certify(context)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    proof = prove(cdc_systems)
    assert (proof.wrong, proof.lake_rows, proof.warehouse_rows) == ([], proof.outbox, proof.outbox)


def test_without_faults_every_order_is_everywhere_once(cdc_systems: Systems, shop: Shop) -> None:
    """Takes long: Connect is started."""
    shop.run(200, with_faults=False)

    proof = prove(cdc_systems)
    assert proof.holds
    assert (proof.topic_records, proof.warehouse_rows, findings(proof)) == (proof.outbox, proof.outbox, set())
    assert (proof.lake_rows, proof.lake_orders) == (proof.outbox, proof.outbox)
