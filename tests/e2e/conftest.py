"""One stack for the session, and the scenarios on it, begun together and each on a shop of its own."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e import scenarios
from tests.e2e.scenarios import Answered, Asked, Backfilled, Broken, Scheduled
from tests.e2e.shop import Shop
from tests.e2e.stage import Stage

_AT_ONCE = 2  # as many as the cores that are there to be counted on
_SECONDS = 800.0


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stack of its own, with a folder of pipelines of its own, by `makewhole up` and `makewhole down`."""
    root = tmp_path_factory.mktemp("e2e")
    pipelines = root / "pipelines"
    pipelines.mkdir()
    for name, text in scenarios.FILES.items():
        (pipelines / f"{name}.yaml").write_text(text)
    stage = Stage(root / "home", pipelines)
    try:
        started = stage.command("up")
        assert started.returncode == 0, started.stdout + started.stderr
        yield stage
    finally:
        stage.command("down")


@pytest.fixture(scope="session")
def shops(stage: Stage) -> Iterator[Mapping[str, Shop]]:
    """A shop for each scenario, not built yet."""
    made = {
        name: Shop(name, stage.status["kafka"]["bootstrap"], stage.status["postgres"]["dsn"])
        for name in scenarios.FILES
    }
    yield made
    for shop in made.values():
        shop.stop_loader()


@pytest.fixture(scope="session")
def begun(stage: Stage, shops: Mapping[str, Shop], request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Any]]]:
    """Every scenario that a test of this session looks at, on its way."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield {
            name: pool.submit(play, stage, shops[name]) for name, play in scenarios.SCENARIOS.items() if name in wanted
        }


def _seen(name: str) -> Callable[[dict[str, Future[Any]]], Any]:
    @pytest.fixture(scope="session", name=name)
    def seen(begun: dict[str, Future[Any]]) -> Any:
        return begun[name].result(_SECONDS)

    return seen


scheduled: Callable[..., Scheduled] = _seen("scheduled")
backfilled: Callable[..., Backfilled] = _seen("backfilled")
answered: Callable[..., Answered] = _seen("answered")
ignored: Callable[..., Asked] = _seen("ignored")
broken: Callable[..., Broken] = _seen("broken")
