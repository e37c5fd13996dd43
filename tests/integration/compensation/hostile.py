"""Make plans to be tampered with, and read the refusals."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from makewhole.compensation.approval.answer import Answer, Decision
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.judge_gaps import GapContext, judge_gaps_again
from makewhole.compensation.verification.judge_key import KeyJudge
from makewhole.journal.database import connect as connect_journal
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.written_keys import reversals_of
from makewhole.model.errors import MakewholeError, RefusedError
from makewhole.model.hops import Remedy, Reverse
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import Finding, Verdict
from tests.integration.compensation.world import PlanWorld

HOP = "flights→warehouse"
COUPON = Reverse(to="reversals", value={"id": "{{ key }}", "delay": "{{ row.delay }}"})


def refusal(attempt: Callable[[], object], kind: type[MakewholeError] = RefusedError) -> str:
    with pytest.raises(kind) as caught:
        attempt()
    return str(caught.value)


def redelivery(world: PlanWorld, *, above_actions: int = 1_000, to: str | None = None) -> Plan:
    """A plan that redelivers K0, K1 and K2."""
    if to is not None:
        world.add_topic(to)
        world.change_hop(HOP, redeliver_to=to)
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=above_actions))
    world.send(range(3))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(3)])
    assert isinstance(plan, Plan)
    assert plan.state is (PlanState.AWAITING_APPROVAL if above_actions < 3 else PlanState.FROZEN)
    return plan


def prepare(world: PlanWorld, reverse: Reverse) -> str:
    topic: str = world.add_topic("reversals")
    world.change_hop(HOP, reverse=reverse)
    world.remedies(HOP, duplicate=Remedy.REVERSE)
    return topic


def reversal(world: PlanWorld) -> Plan:
    """A plan that takes back the second row of K1."""
    prepare(world, COUPON)
    world.load_again("K1", copies=2)
    plan = world.plan([duplicate(world, "K1")])
    assert isinstance(plan, Plan)
    return plan


def duplicate(world: PlanWorld, key: str) -> Finding:
    number = sum(key.encode())
    finding = world.finding(number, Verdict.DUPLICATE)
    values = {"delay": world.first_delay(key)}
    return replace(finding, key=key, evidence={**finding.evidence, "target_copies": 2, "values": values})


def answer(plan: Plan) -> Answer:
    return Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="oncall")


def forge(bootstrap: str, topic: str, headers: list[tuple[str, str]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(
        topic, key="K1", value="{}", partition=0, headers=[(name, value.encode()) for name, value in headers]
    )
    assert producer.flush(30) == 0


def judged(world: PlanWorld, since: StartOffsets | None = None) -> list[JudgedFinding]:
    finding = duplicate(world, "K1")
    with connect_journal(world.journal) as journal:
        past = reversals_of(journal, world.pipeline, 1, [finding.key_hash])
    with judge_gaps_again(
        world.context,
        [[JudgedFinding(finding=finding)]],
        since or StartOffsets(offsets={}),
        0.0,
        None,
        GapContext(open_judge=KeyJudge, past=lambda _: past),
    ) as outcomes:
        return [item for batch in outcomes for item in batch]
