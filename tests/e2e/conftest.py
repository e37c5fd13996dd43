"""Start one stack for the session and the scenarios on it, together and each on a shop of its own."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from makewhole.stack import local
from makewhole.stack.ports import LOOPBACK
from tests.e2e.scenarios import acceptances, approvals, failures, one_application, own_dags, unattended
from tests.e2e.scenarios.acceptances import AcceptedByTwo
from tests.e2e.scenarios.approvals import Answered, Asked, Planned, Undone
from tests.e2e.scenarios.failures import Broken, Healed
from tests.e2e.scenarios.one_application import Joined, Killed
from tests.e2e.scenarios.own_dags import OWN_DAGS, Consumed, OwnDag
from tests.e2e.scenarios.pipeline_files import FILES, GROUPS
from tests.e2e.scenarios.unattended import Backfilled, Observed, Outlasted, Scheduled, SelfChecked
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import RUN_SECONDS, Stage
from tests.world.metrics import TakenMetrics, metrics_server
from tests.world.people import TakenPosts, webhook_server

_FOLDER_PREFIX = "makewhole-e2e-"
_TRIES = 3
_AT_ONCE = 2  # as many as the cores that are there to be counted on
_SECONDS_OF_TWO = 400.0  # for as many scenarios as run at once, on a machine that does other work, too
_SCENARIOS: Mapping[str, Callable[[Stage, ScenarioShop], Any]] = {
    "healed": failures.healed,
    "answered": approvals.answered,
    "outlasted": unattended.outlasted,
    "consumed": own_dags.consumed,
    "nightly": own_dags.nightly,
    "scheduled": unattended.scheduled,
    "self_checked": unattended.self_checked,
    "killed": one_application.killed,
    "joined": one_application.joined,
    "backfilled": unattended.backfilled,
    "undone": approvals.undone,
    "accepted": acceptances.accepted,
    "planned": approvals.planned,
    "observed": unattended.observed,
    "broken": failures.broken,
    "ignored": approvals.ignored,
}
"""The longest first."""
_FOR_TEST_ALL = frozenset(_SCENARIOS) - {"answered", "scheduled", "nightly"}
"""Scenarios left to `make test-all`: each takes a minute or more of two cores."""


def _most_seconds(scenarios: int) -> float:
    """Return for how long a test waits at most for one of that many scenarios, which may be the last to begin."""
    return _SECONDS_OF_TWO * math.ceil(scenarios / _AT_ONCE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of those scenarios, before tests are chosen by their marks."""
    for item in items:
        if _FOR_TEST_ALL.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.extended)
            item.add_marker(pytest.mark.timeout(_most_seconds(len(_SCENARIOS)) + RUN_SECONDS))


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Not below pytest's own: PostgreSQL runs as another user, and another session of pytest would lock that user out.

    Stacks of sessions that were killed are ended and removed.
    """
    for leftover in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        if not psutil.pid_exists(int(leftover.name.split("-")[2])):
            local.down(leftover / "home")
            shutil.rmtree(leftover, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def wanted(request: pytest.FixtureRequest) -> frozenset[str]:
    """The scenarios that a test of this session looks at."""
    asked = (name for item in request.session.items for name in getattr(item, "fixturenames", ()))
    return frozenset(_SCENARIOS).intersection(asked)


@pytest.fixture(scope="session")
def people() -> Iterator[TakenPosts]:
    """What is posted to people."""
    with webhook_server() as taken:
        yield taken


@pytest.fixture(scope="session")
def metrics() -> Iterator[TakenMetrics]:
    """The metrics that Airflow sends."""
    with metrics_server() as taken:
        yield taken


def own_dag_folder(folder: Path, scenarios: frozenset[str]) -> dict[str, str]:
    """Write the DAG files of people's own that scenarios have; return the variables by which Airflow reads them, beside
    makewhole's."""
    own = folder / "people"
    own.mkdir()
    for name in scenarios & set(OWN_DAGS):
        (own / f"{name}.py").write_text(OWN_DAGS[name], encoding="utf-8")
    local_bundle = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundles = [
        {"name": "dags-folder", "classpath": local_bundle, "kwargs": {}},
        {"name": "people", "classpath": local_bundle, "kwargs": {"path": str(own)}},
    ]
    return {"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles)}


@pytest.fixture(scope="session")
def lineage() -> Iterator[TakenPosts]:
    """The events that Airflow sends to OpenLineage."""
    with webhook_server() as taken:
        yield taken


@pytest.fixture(scope="session")
def stage(
    folder: Path, wanted: frozenset[str], people: TakenPosts, metrics: TakenMetrics, lineage: TakenPosts
) -> Iterator[Stage]:
    """A stack of its own, with a folder of their pipelines, by `makewhole up` and `makewhole down`."""
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for name in wanted & set(FILES):
        (pipelines / f"{name}.yaml").write_text(FILES[name])
    stage = Stage(folder / "home", pipelines, _AT_ONCE)
    (folder / "groups.yaml").write_text(GROUPS)
    stage.variables["MAKEWHOLE_GROUPS"] = str(folder / "groups.yaml")
    stage.variables |= {
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://{LOOPBACK}:{metrics.port}/v1/metrics",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": f"http://{LOOPBACK}:{lineage.port}"}),
    }
    stage.variables |= own_dag_folder(folder, wanted)
    stage.variables["AIRFLOW_CONN_PEOPLE"] = f"http://{LOOPBACK}:{people.port}"
    try:
        started = stage.command("up")
        for _ in range(_TRIES):  # other suites choose ports beside this one, and one may have been taken since
            if started.returncode == 0 or "is held by" not in started.stderr + started.stdout:
                break
            started = stage.command("up", "--new-ports")
        assert started.returncode == 0, started.stdout + started.stderr
        yield stage
    finally:
        stage.command("down")


@pytest.fixture(scope="session")
def shops(stage: Stage) -> Iterator[Mapping[str, ScenarioShop]]:
    """A shop for each scenario, not built yet."""
    made = {
        name: ScenarioShop(name, stage.status["kafka"]["bootstrap"], stage.status["postgres"]["dsn"])
        for name in _SCENARIOS
    }
    yield made
    for shop in made.values():
        shop.stop_loader()


@pytest.fixture(scope="session")
def begun(stage: Stage, shops: Mapping[str, ScenarioShop], wanted: frozenset[str]) -> Iterator[dict[str, Future[Any]]]:
    """Every scenario that is wanted, on its way."""

    def played(name: str) -> Any:
        with stage.places:
            return _SCENARIOS[name](stage, shops[name])

    with ThreadPoolExecutor(len(_SCENARIOS)) as pool:
        yield {name: pool.submit(played, name) for name in _SCENARIOS if name in wanted}


@pytest.fixture(scope="session", autouse=True)
def begin_at_once(wanted: frozenset[str], request: pytest.FixtureRequest) -> None:
    """Have the scenarios on their way while tests that look at none of them are run."""
    if wanted:
        request.getfixturevalue("begun")


def _seen(name: str) -> Callable[[dict[str, Future[Any]]], Any]:
    @pytest.fixture(scope="session", name=name)
    def seen(begun: dict[str, Future[Any]]) -> Any:
        return begun[name].result(_most_seconds(len(begun)))

    return seen


scheduled: Callable[..., Scheduled] = _seen("scheduled")
outlasted: Callable[..., Outlasted] = _seen("outlasted")
self_checked: Callable[..., SelfChecked] = _seen("self_checked")
backfilled: Callable[..., Backfilled] = _seen("backfilled")
answered: Callable[..., Answered] = _seen("answered")
planned: Callable[..., Planned] = _seen("planned")
ignored: Callable[..., Asked] = _seen("ignored")
broken: Callable[..., Broken] = _seen("broken")
healed: Callable[..., Healed] = _seen("healed")
undone: Callable[..., Undone] = _seen("undone")
accepted: Callable[..., AcceptedByTwo] = _seen("accepted")
observed: Callable[..., Observed] = _seen("observed")
joined: Callable[..., Joined] = _seen("joined")
killed: Callable[..., Killed] = _seen("killed")
nightly: Callable[..., OwnDag] = _seen("nightly")
consumed: Callable[..., Consumed] = _seen("consumed")
