"""Test `makewhole plan dry-run`."""

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from tests.integration.compensation.preview.dry_runs import mixed
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
def command(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    monkeypatch.setattr("makewhole.cli.plan.dry_run.find_pipeline", lambda _: world.pipeline)
    monkeypatch.setattr("makewhole.cli.plan.dry_run.connections_of", lambda _: world.connections)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["plan", "dry-run", *words])
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return run


def test_the_command_shows_counts_reasons_and_rows(world: PlanWorld, command: Callable[..., str]) -> None:
    plan = mixed(world)
    world.sql("delete from dw.departures where id = 'K4'")
    world.sql("update dw.departures set note = E'\\x1b[2J' where id = 'K6' and note = 'copy 0'")
    shown = command(plan.id, "--samples", "1")
    lines = [line.split() for line in shown.splitlines()]
    assert ["upsert", "warehouse", "6", "5", "1", "0", "0", "archive", "6"] in lines
    assert "refused, upsert warehouse: 1 × erased: the row of this key is gone since the plan was made" in shown
    assert "0 upsert warehouse K0: would be done\n  + {" in shown
    assert "(moved aside)" in shown
    assert "\x1b" not in shown
    assert shown.endswith("Nothing was changed. The guards are asked again when the plan runs\n")


def test_the_command_gives_json(world: PlanWorld, command: Callable[..., str]) -> None:
    plan = mixed(world, redeliver=True)
    document = json.loads(command(plan.id, "--samples", "1", "--json"))
    assert (document["plan"], document["sha256"], document["stopped_by"]) == (plan.id, plan.sha256, None)
    assert document["actions"] == {"would": 9, "refused": 0, "waits": 0, "done": 0}
    assert [part["target"] for part in document["parts"]] == ["flights", "warehouse", "warehouse"]
    record = document["samples"][0]
    assert (record["payload_from"], record["record"]["key"], record["record"]["fields"]) == (
        "archive",
        "K0",
        ["id", "delay", "extra"],
    )
    assert json.loads(command(plan.id, "--samples", "0", "--json"))["samples"] == []
