"""Start a stack of its own for tests that kill parts of it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.stack import local
from tests.e2e.dying_parts.endings import Ending, ending
from tests.e2e.dying_parts.kills import begun, built, end, stop_loaders, up
from tests.e2e.shop import shop_file
from tests.e2e.stage import Stage

_ASKED = "above_actions: 0, by: [oncall]"
PIPELINES = {
    "undisturbed": shop_file("undisturbed"),
    "restarted": shop_file("restarted"),
    "reports": shop_file("reports"),
    "long_away": shop_file("long_away"),
    "no_triggerer": shop_file("no_triggerer", approval=_ASKED).replace("settle: 1s", "settle: 4m"),
    "database": shop_file("database"),
    "metadata": shop_file("metadata"),
    "leftovers": shop_file("leftovers"),
    "leftovers_late": shop_file("leftovers_late"),
    "in_snapshot": shop_file("in_snapshot"),
    "in_reconcile": shop_file("in_reconcile"),
    "in_compensate": shop_file("in_compensate"),
    "last_try": shop_file("last_try", retry_for="0s"),
    "child_alone": shop_file("child_alone"),
    "cleared": shop_file("cleared"),
    "cleared_late": shop_file("cleared_late"),
    "twice": shop_file("twice"),
}
SHORT_WAITS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
}
"""A task whose process is gone, and one that a dead scheduler left, are found after a minute, not after five;
not sooner, as what a busy machine is late with would be taken for dead, too. Nor is it to give up a DAG file."""


def started(folder: Path) -> Stage:
    """Start a stack whose parts may be killed, with the pipelines above, by `makewhole up`."""
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for name, text in PIPELINES.items():
        (pipelines / f"{name}.yaml").write_text(text, encoding="utf-8")
    stage = Stage(folder / "home", pipelines, 1)
    stage.variables |= SHORT_WAITS
    up(stage)
    return stage


@pytest.fixture(scope="session")
def one_stage() -> Iterator[Stage]:
    """A stack of these tests alone."""
    folder = Path(tempfile.mkdtemp(prefix="makewhole-dying-"))
    try:
        yield started(folder)
    finally:
        stop_loaders()
        local.down(folder / "home")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def undisturbed(one_stage: Stage) -> Ending:
    """A window that nothing disturbs."""
    shop = built(one_stage, "undisturbed")
    run = begun(one_stage, shop)
    assert end(one_stage, run) == "success", one_stage.story(run)
    return ending(one_stage, shop)


@pytest.fixture
def own_stage(one_stage: Stage) -> Stage:
    """The stack with all its parts, whatever an earlier test that failed has left of it."""
    if one_stage.command("status").returncode != 0:
        up(one_stage)
    return one_stage
