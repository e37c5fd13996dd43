"""Read how a window ended: in the journal, and at the systems by plain clients."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil

from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import Stage, until
from tests.world.sql import Rows

_LEFT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The end of a shop's only window. `windows`: number, revision, state and the gate's answers. `findings`: hop,
    verdict, cause, key, outcome. `chain`: number, revision and what it revokes of each entry. `plans`: state, actions
    by remedy, chunks with a receipt. `replays`: the orders that each plan wrote. `copies`: of each order in the topic
    that has more than one, or none. `todo`: what waits for a person."""

    windows: Rows
    counts: Rows
    findings: Rows
    chain: Rows
    proof: int
    plans: Rows
    replays: tuple[frozenset[str], ...]
    copies: Mapping[str, int]
    is_whole: bool
    quarantined: Rows
    failures: Rows
    todo: tuple[str, ...]


def ending(stage: Stage, shop: ScenarioShop) -> Ending:
    """Read how the shop's window ended, once everything that was written to it is loaded."""
    until(lambda: shop.is_whole() or None, 30, lambda: shop.contents())
    shop.stop_loader()
    counted = shop.copies()
    return Ending(
        windows=stage.journal(
            "select number, revision, state, array(select stage || ' ' || answer from makewhole.gate_report gate "
            "where (gate.pipeline, gate.number, gate.revision) = (w.pipeline, w.number, w.revision) order by 1) "
            "from makewhole.window w where pipeline = %s order by 1, 2",
            shop.name,
        ),
        counts=stage.journal(
            "select number, revision, hop, stage, counts::text from makewhole.hop_result where pipeline = %s "
            "order by 1, 2, 3, 4",
            shop.name,
        ),
        findings=stage.journal(
            "select revision, hop, verdict, cause, key, outcome from makewhole.finding where pipeline = %s "
            "order by 1, 2, 3, 5",
            shop.name,
        ),
        chain=stage.journal(
            "select number, revision, kind, revokes from makewhole.certificate where pipeline = %s order by ordinal",
            shop.name,
        ),
        proof=stage.command("certificate", "verify", shop.name).returncode,
        plans=stage.journal(
            "select revision, state, counts::text, (select count(*) from makewhole.chunk where plan = id) "
            "from makewhole.plan where pipeline = %s order by 1",
            shop.name,
        ),
        replays=tuple(sorted(map(frozenset, shop.lineage().values()), key=sorted)),
        copies={order: number for order, number in counted.items() if number != 1},
        is_whole=shop.is_whole(),
        quarantined=sorted(
            shop.sql("select row ->> 'id' from makewhole.quarantine where source_table like %s", f"%{shop.name}.%")
        ),
        failures=stage.journal("select step, run, reason from makewhole.step_failure where pipeline = %s", shop.name),
        todo=tuple(item["what"] for item in todo(stage, shop)),
    )


def todo(stage: Stage, shop: ScenarioShop) -> list[dict[str, Any]]:
    """Return what waits for a person of the shop, as `makewhole todo` lists it."""
    printed = stage.command("todo", "--json")
    assert printed.returncode == 0, printed.stderr
    items = [json.loads(line) for line in printed.stdout.splitlines()]
    return [item for item in items if item["pipeline"] == shop.name]


def require_open(stage: Stage, shop: ScenarioShop) -> None:
    """Hold what people are shown of a window that is disturbed to what is true: it is open, nothing of it is proven,
    and it waits for no person."""
    printed = stage.command("windows", shop.name, "--json")
    shown = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(window["window"], window["state"], window["certificate"]) for window in shown] == [(1, "open", None)]
    assert todo(stage, shop) == []


def require_nothing_left(stage: Stage, shop: ScenarioShop) -> None:
    """Wait until no process works for the shop, and no lease is held."""
    until(lambda: None if processes_of(shop) else True, _LEFT_SECONDS, lambda: processes_of(shop))
    held = stage.journal("select resource, holder, expires_at from makewhole.lease where expires_at > now()")
    assert held == []


def processes_of(shop: ScenarioShop) -> Counter[str]:
    """Count the applications of Spark that work for a shop, by their names."""
    processes: Counter[str] = Counter()
    for process in psutil.process_iter(["cmdline", "name"]):
        if shop.name in (process.info["cmdline"] or ()):
            processes[process.info["name"]] += 1
    return processes
