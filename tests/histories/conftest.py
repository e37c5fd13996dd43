"""Start what histories are played on: one Kafka, one PostgreSQL; for each history its own tables."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from makewhole.config.connection_text import variable_of
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from makewhole_spark.reconcile.tails import log_tail
from tests.histories.events import History
from tests.histories.pipelines.describe import describe as describe_pipeline
from tests.histories.pipelines.events import History as PipelineHistory
from tests.histories.pipelines.play import PipelinePlayer
from tests.histories.pipelines.stores import DatasetPlace, place_of
from tests.histories.play import Player
from tests.histories.routes.describe import describe as describe_routes
from tests.histories.routes.describe import make_places
from tests.histories.routes.describe import places as route_places
from tests.histories.routes.events import History as RouteHistory
from tests.histories.routes.play import RoutePlayer, key_of
from tests.histories.shapes.registry_formats import register_schemas
from tests.histories.truth import Truth
from tests.histories.upserts.describe import describe, make_tables, second_place
from tests.histories.upserts.events import History as UpsertHistory
from tests.histories.upserts.play import UpsertPlayer
from tests.histories.watched import STATUS, Watch, places
from tests.world.databases import Databases
from tests.world.environment import enter, service_environment, set_connection
from tests.world.kept_sessions import kept_sessions
from tests.world.pipeline_file import store as store_point
from tests.world.prepared import prepared_transactions
from tests.world.registry_server import RegistryServer, registry_server
from tests.world.topics import delete_topics, make_topic
from tests.world.windows import ReconciledShop

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]
"""Number of partitions → a shop, as long as its context lasts."""

_HISTORIES = 12
_OFFSETS_OF_A_PIECE = 3
"""Splits the rest of a log so finely that there are whole pieces, which later windows know by their filters."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("histories")
    group.addoption("--histories", type=int, default=_HISTORIES, help="how many histories")
    group.addoption("--seed", type=int, default=1, help="the first one's seed; the next ones count on")
    group.addoption(
        "--kinds",
        default="",
        help="the kinds of events to draw, `loss,late`; with a + or −: beside the default ones, or without",
    )
    group.addoption(
        "--shrink", action="store_true", help="leave events out of a history that fails while it still fails"
    )
    group.addoption("--results", type=Path, help="append seed, seconds and outcome of each history to this file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        option = metafunc.config.getoption
        first, count = option("seed", default=1), option("histories", default=_HISTORIES)
        metafunc.parametrize("seed", range(first, first + count))


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryServer]:
    """A registry with the schemas of all records."""
    with registry_server() as server:
        register_schemas(server)
        yield server


@pytest.fixture
def shops(
    carrier: Carrier,
    kafka: KafkaServer,
    databases: Databases,
    journal_template: str,
    registry: RegistryServer,
    tmp_path: Path,
) -> NewShop:
    """Make a shop with so many partitions for a history, and clear it away again; a shrunk history needs many."""

    @contextmanager
    def set_up(partitions: int) -> Iterator[ReconciledShop]:
        folder = tmp_path / uuid.uuid4().hex
        folder.mkdir()
        with (
            databases.of_a_test("test") as dsn,
            databases.of_a_test("journal", template=journal_template) as journal,
            pytest.MonkeyPatch.context() as patch,
            kept_sessions(),
        ):
            shop = ReconciledShop(
                carrier=carrier,
                bootstrap=kafka.bootstrap,
                dsn=dsn,
                journal=journal,
                folder=folder,
                partitions=partitions,
            )
            enter(patch, {**service_environment(shop, folder), variable_of("registry"): registry.connection()})
            patch.setattr(log_tail, "_RECORDS_PER_TASK", _OFFSETS_OF_A_PIECE)
            make_topic(shop.admin, shop.topic, partitions)
            yield shop
            delete_topics(shop.admin, [shop.topic, *shop.more_topics])

    return set_up


@pytest.fixture
def stage(shops: NewShop) -> Callable[[History], AbstractContextManager[Player]]:
    """Set the stage for a history."""

    @contextmanager
    def set_up(history: History) -> Iterator[Player]:
        with shops(history.partitions) as shop:
            _describe(shop, history)
            shop.make_tables(STATUS)
            shop.sql("create table erasures (id text)")
            watch = Watch(shop, places(shop), {"amount"})
            truth = Truth(history.partitions, history.has_filter)
            yield Player(history=history, shop=shop, truth=truth, watch=watch)

    return set_up


@pytest.fixture
def upsert_stage(
    shops: NewShop,
) -> Callable[[UpsertHistory], AbstractContextManager[UpsertPlayer]]:
    """Set the stage for a history of versions."""

    @contextmanager
    def set_up(history: UpsertHistory) -> Iterator[UpsertPlayer]:
        with shops(history.partitions) as shop:
            make_tables(shop, history)
            second = second_place(shop, history)
            describe(shop, history, history.region)
            watch = Watch(shop, places(shop) | second, {"amount", "version"})
            yield UpsertPlayer(history=history, shop=shop, watch=watch)

    return set_up


@pytest.fixture
def route_stage(shops: NewShop) -> Callable[[RouteHistory], AbstractContextManager[RoutePlayer]]:
    """Set the stage for a history of several sources, hops and stores."""

    @contextmanager
    def set_up(history: RouteHistory) -> Iterator[RoutePlayer]:
        with shops(history.partitions) as shop:
            make_places(shop, history)
            describe_routes(shop, history)
            compared = {f"c{at}" for at in range(len(history.columns))}
            watch = Watch(shop, route_places(shop), compared, key_of(history))
            yield RoutePlayer(history=history, shop=shop, watch=watch)

    return set_up


@pytest.fixture
def pipeline_stage(
    shops: NewShop, monkeypatch: pytest.MonkeyPatch
) -> Callable[[PipelineHistory], AbstractContextManager[PipelinePlayer]]:
    """Set the stage for a history of one pipeline of any kind."""

    @contextmanager
    def set_up(history: PipelineHistory) -> Iterator[PipelinePlayer]:
        with shops(history.partitions) as shop, prepared_transactions(shop.dsn) as prepared:
            place = place_of(shop, history)
            place.make()
            if isinstance(place, DatasetPlace):
                set_connection(monkeypatch, "lake", place.lake.described)
            describe_pipeline(shop, history, place)
            yield PipelinePlayer(history=history, shop=shop, place=place, prepared=prepared)

    return set_up


def _describe(shop: ReconciledShop, history: History) -> None:
    """Write the pipeline file that the history says."""
    store = {
        "missing": history.store_missing,
        "duplicate": "quarantine",
        "mismatched": history.store_mismatched,
        "unexpected": "quarantine",
    }
    ledger = {"missing": "produce"}
    if not history.is_repairing:
        store, ledger = dict.fromkeys(store, "report"), dict.fromkeys(ledger, "report")
    group = f"loader-{shop.topic}"
    hop = {"compensation": _flow(store)} | ({"consumer_group": group} if history.has_group else {})
    if "redeliver" in store.values() and not history.has_group:
        hop["redeliver"] = _flow({"to": "source", "despite": f"[{group}]"})
    if history.has_filter:
        hop["where"] = "\"region = 'EU'\""
    erasures = {"erased": "{table: erasures, key: id}"} if history.names_erased else {}
    limits = "{share: 1.0, records_per_second: 100000}"
    compensation = {"limits": limits} | ({"approval": "{above_actions: 0}"} if history.asks else {})
    shop.describe(
        hop=hop,
        ledger_hop={"compensation": _flow(ledger)},
        allow_empty=True,
        compensation=compensation,
        more_points={"warehouse": store_point("db", "warehouse", **erasures)},
    )


def _flow(settings: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"
