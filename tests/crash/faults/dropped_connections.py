"""Drop a runner's connection at a request: before it arrives, or when it is done and not yet answered."""

from collections import Counter
from dataclasses import dataclass, field

from tests.crash.faults.retries import (
    assert_finished,
    assert_state_known,
    report_of_end,
    run_to_the_end,
    run_until_done,
    settled_state,
)
from tests.crash.plan.phase_start import case_at_phase_start
from tests.crash.servers.postgres_proxy import CUT, LOSE
from tests.crash.servers.world import CrashWorld
from tests.crash.states.state_graph import StateGraph
from tests.lab.servers.proxy import Api, Fault, Proxy, Rule

IMPATIENT_SECONDS = 1.0
POSTGRES_FAULTS = (CUT, LOSE)
KAFKA_FAULTS = (Fault.CUT, Fault.LOSE_ANSWER)


def drop_postgres_connection(world: CrashWorld, graph: StateGraph, step: int, how: str) -> bool:
    """Drop the connection at this step. Returns whether a request went over it there."""
    with case_at_phase_start(world, graph.phase) as case:
        run = world.start(case, point=2 * step, how=how, through=world.through_postgres_proxy(case))
        report, hits = report_of_end(run), world.proxy.hits
        assert report.at == graph.start.name(2 * step), f"cut off {report.at}"
        assert_state_known(graph, settled_state(world, case))
        if report.outcome != "done":
            run_to_the_end(world, case)
        assert_finished(world, graph, case)
        return hits > 0


def count_kafka_requests(world: CrashWorld, proxy: Proxy, graph: StateGraph) -> Counter[Api]:
    """Count the requests of each kind that an undisturbed run sends; one of a kind that is not foreseen is an
    error."""
    rule = _Count(client=world.name.encode())
    proxy.add(rule)
    try:
        with case_at_phase_start(world, graph.phase) as case:
            assert report_of_end(world.start(case, through=world.through_kafkas_proxy)).outcome == "done"
            assert_finished(world, graph, case)
    finally:
        proxy.remove(rule)
    return Counter({Api(key): count for key, count in rule.sent.items()})


def drop_kafka_connection(
    world: CrashWorld, proxy: Proxy, graph: StateGraph, api: Api, number: int, how: Fault
) -> bool:
    """Drop the connection at the so many-th request of this kind. Returns whether there was one."""
    rule = proxy.add(Rule(api=api, fault=how, first=number, containing=world.name.encode()))
    try:
        with case_at_phase_start(world, graph.phase) as case:
            report = report_of_end(world.start(case, through=world.through_kafkas_proxy))
            assert_state_known(graph, settled_state(world, case))
            if report.outcome != "done":
                run_to_the_end(world, case)
            assert_finished(world, graph, case)
    finally:
        proxy.remove(rule)
    return rule.hits > 0


def delay_kafka_request(world: CrashWorld, proxy: Proxy, graph: StateGraph, api: Api, number: int) -> bool:
    """Hold the so many-th request of this kind until the plan is done by others; it arrives then (KAFKA-17754)."""
    rule = proxy.add(Rule(api=api, fault=Fault.HOLD, first=number, containing=world.name.encode()))
    try:
        with case_at_phase_start(world, graph.phase) as case:
            report_of_end(world.start(case, through=world.through_kafkas_proxy, patience_seconds=IMPATIENT_SECONDS))
            run_until_done(world, case)
            before = settled_state(world, case)
            rule.release()
            if rule.hits:
                rule.wait_until_done()
            after = settled_state(world, case)
            assert after.fingerprint == before.fingerprint, f"the late request has changed something: {after.summary}"
            assert_finished(world, graph, case)
    finally:
        proxy.remove(rule)
    return rule.hits > 0


@dataclass(kw_only=True, eq=False)
class _Count(Rule):
    """Acts on nothing and counts the requests of one client."""

    api: Api = Api.PRODUCE
    fault: Fault = Fault.NOTE
    client: bytes
    sent: Counter[int] = field(default_factory=Counter)

    def takes(self, frame: bytes) -> bool:
        if self.client in frame:
            self.sent[int.from_bytes(frame[:2], "big")] += 1
        return False
