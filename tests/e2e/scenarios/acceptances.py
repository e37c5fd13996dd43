"""Accept what a pipeline that only observes has found: asked for by one person, answered by another, and taken back."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.e2e.scenarios.approvals import newest_run
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import Contents, Mistakes, ScenarioShop
from tests.e2e.stage import ACCEPT, RUN_SECONDS, Run, Stage, until, utc

WHY = "its loader is gone, and the order was cancelled by telephone"


@dataclass(frozen=True, kw_only=True)
class AcceptedByTwo:
    """A window with a key that a store lacks: the answers of the commands of each person, in order."""

    before: Contents
    after: Contents
    viewer: subprocess.CompletedProcess[str]
    own_answer: subprocess.CompletedProcess[str]
    asked: Mapping[str, Any]
    exit_code: int
    tasks: Mapping[str, str]
    revoked: Mapping[str, Any]
    exit_code_of_revocation: int
    certified_events: Sequence[Mapping[str, Any]]
    revoked_events: Sequence[Mapping[str, Any]]


def accepted(stage: Stage, shop: ScenarioShop) -> AcceptedByTwo:
    """Every acceptance of this shop needs two people."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(never_loaded=(11,)))
    stage.wait_for_dag(shop.pipeline_dag)
    stage.ended(stage.begin(shop.name, to=utc(STARTED)), "failed")
    before = shop.contents()
    words = ("accept", shop.name, "--window", "1", "--all", "--reason", WHY, "--json")
    viewer = stage.command(*words, user="viewer")
    with ThreadPoolExecutor(1) as beside:
        asking = beside.submit(stage.command, *words, user="admin")
        run = Run(dag=ACCEPT, id=until(lambda: newest_run(stage, ACCEPT), 240, lambda: "a run of the acceptance"))
        stage.wait_for_question(run)
        word = stage.journal("select id from makewhole.acceptance where pipeline = %s", shop.name)[0][0]
        own_answer = stage.command("accept", "--approve", word, user="admin")
        other = stage.command("accept", "--approve", word, user="oncall")
        assert other.returncode == 0, other.stderr
        asked = asking.result(RUN_SECONDS)
    assert asked.stdout, asked.stderr
    revoked = stage.command(
        "accept", "--revoke", word, "--reason", "it was shipped after all", "--json", user="oncall", has_token=True
    )
    assert revoked.stdout, revoked.stderr
    return AcceptedByTwo(
        before=before,
        after=shop.contents(),
        viewer=viewer,
        own_answer=own_answer,
        asked=json.loads(asked.stdout),
        exit_code=asked.returncode,
        tasks=stage.tasks(run),
        revoked=json.loads(revoked.stdout),
        exit_code_of_revocation=revoked.returncode,
        certified_events=_events(stage, f"makewhole_{shop.name}"),
        revoked_events=_events(stage, f"makewhole_revoked_{shop.name}"),
    )


def _events(stage: Stage, asset: str) -> list[Mapping[str, Any]]:
    """Return what the events of an asset say, oldest first."""
    events = stage.get("/assets/events", limit=100, order_by="timestamp")["asset_events"]
    return [event["extra"] for event in events if event["name"] == asset]
