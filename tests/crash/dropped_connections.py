"""Connections that are dropped, at every request: before it arrives, and when it is done and not yet answered."""

from collections import Counter
from dataclasses import dataclass, field

from tests.crash.phase_start import fresh
from tests.crash.postgres_proxy import CUT, LOSE
from tests.crash.retries import assert_known, assert_over, ended, look, run_to_the_end, run_until_done
from tests.crash.state_graph import Atlas
from tests.crash.world import World
from tests.lab.proxy import Api, Fault, Proxy, Rule

IMPATIENT_SECONDS = 1.0
POSTGRES_WAYS = (CUT, LOSE)
KAFKA_WAYS = (Fault.CUT, Fault.LOSE_ANSWER)


def cut_off_from_postgres(world: World, atlas: Atlas, step: int, how: str) -> bool:
    """The connection is dropped at this step. Returns whether a request went over it there."""
    with fresh(world, atlas.phase) as case:
        run = world.start(case, point=2 * step, how=how, through=world.through_postgres_proxy)
        report, hits = ended(run), world.proxy.hits
        assert report.at == atlas.start.name(2 * step), f"cut off {report.at}"
        assert_known(atlas, look(world, case))
        if report.outcome != "done":
            run_to_the_end(world, case)
        assert_over(world, atlas, case)
        return hits > 0


def requests_to_kafka(world: World, proxy: Proxy, atlas: Atlas) -> Counter[Api]:
    """How many requests of each kind an undisturbed run sends; one of a kind that nobody thought of is an error."""
    rule = _Count(client=world.name.encode())
    proxy.add(rule)
    try:
        with fresh(world, atlas.phase) as case:
            assert ended(world.start(case, through=world.through_kafkas_proxy)).outcome == "done"
            assert_over(world, atlas, case)
    finally:
        proxy.remove(rule)
    return Counter({Api(key): count for key, count in rule.sent.items()})


def cut_off_from_kafka(world: World, proxy: Proxy, atlas: Atlas, api: Api, number: int, how: Fault) -> bool:
    """The connection is dropped at the so many-th request of this kind. Returns whether there was one."""
    rule = proxy.add(Rule(api=api, fault=how, first=number, containing=world.name.encode()))
    try:
        with fresh(world, atlas.phase) as case:
            report = ended(world.start(case, through=world.through_kafkas_proxy))
            assert_known(atlas, look(world, case))
            if report.outcome != "done":
                run_to_the_end(world, case)
            assert_over(world, atlas, case)
    finally:
        proxy.remove(rule)
    return rule.hits > 0


def late_at_kafka(world: World, proxy: Proxy, atlas: Atlas, api: Api, number: int) -> bool:
    """The so many-th request of this kind is held until the plan is done by others, and arrives then (KAFKA-17754)."""
    rule = proxy.add(Rule(api=api, fault=Fault.HOLD, first=number, containing=world.name.encode()))
    try:
        with fresh(world, atlas.phase) as case:
            ended(world.start(case, through=world.through_kafkas_proxy, patience_seconds=IMPATIENT_SECONDS))
            run_until_done(world, case)
            before = look(world, case)
            rule.release()
            if rule.hits:
                rule.wait_until_done()
            after = look(world, case)
            assert after.fingerprint == before.fingerprint, f"the late request has changed something: {after.summary}"
            assert_over(world, atlas, case)
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
