"""Test that windows and plans are done once whatever happens at whatever call: all points are enumerated, none drawn.

make crashes                                      all of it
make crashes CRASH_ARGS="-k kafka"                some
make crashes CRASH_ARGS="--crash-phases undo,restore"    some phases
make crashes CRASH_ARGS=--crash-record            write the number of points down
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from tests.crash import points
from tests.crash.enumeration import KILLS, PHASES, Enumeration, is_long, jobs
from tests.crash.faults import dropped_connections, killed_and_stopped
from tests.crash.runners.calls import may_last
from tests.crash.servers.postgres_proxy import CUT, LOSE
from tests.crash.states.durable import COVERED
from tests.crash.states.state_graph import KnownState, uncovered
from tests.crash.windows import swept
from tests.lab.servers.proxy import Api

pytestmark = [pytest.mark.crash, pytest.mark.timeout(6 * 3600)]

replaying = pytest.mark.parametrize("phase", ["compensate", "first", "marker lost", "avro"])
writing = pytest.mark.parametrize("phase", ["compensate", "datasets"])


def every_phase(test: Callable[..., None]) -> Any:
    """Have a test once for each phase; the short version leaves some out."""

    @pytest.mark.parametrize("phase", PHASES)
    @wraps(test)
    def of_phase(enumeration: Enumeration, phase: str) -> None:
        if enumeration.is_short and is_long(phase):
            pytest.skip("of formats one, and of datasets the repair, are enough for every change")
        test(enumeration, phase)

    return of_phase


SILENT = re.compile(
    r".*: (limit_idle|select set_config.*|close|purge|begin_transaction|poll|consumer_group_metadata|.*savepoint.*|new)"
)
"""Steps that neither read nor write anything durable: a runner that stands still before one of them will do just what
it does when it stands still before the next step."""

_OF_TOPIC_AND_TABLE = "of zombies, those of a topic and a table are enough for every change"
AT_WILL = (Api.METADATA, Api.API_VERSIONS, Api.FIND_COORDINATOR)
"""Requests that the client sends when it likes."""

UNSTEADY = (*AT_WILL, Api.OFFSET_FETCH)
"""These, and those for each group that the cluster has at the moment: their number is not the same in every run."""


@every_phase
def test_no_point_is_left_out(enumeration: Enumeration, phase: str) -> None:
    """Takes long: the servers start, and the phase runs undisturbed."""
    counts = points.counted(enumeration.graph(phase))
    if enumeration.is_recording:
        points.record(phase, counts)
    assert list(points.complaints(phase, counts)) == []


@every_phase
def test_a_fingerprint_holds_all_that_a_recovery_reads(enumeration: Enumeration, phase: str) -> None:
    assert uncovered(enumeration.graph(phase), COVERED) == set()


@every_phase
def test_killed_at_every_point_it_is_done_once(enumeration: Enumeration, phase: str) -> None:
    """Takes long: for each point a runner is killed, and another one goes on."""
    graph = enumeration.graph(phase)
    cases = [(_name(graph.start, point), (graph, graph.start, point)) for point in enumeration.points(phase)]
    enumeration.do(phase, "killed", jobs(killed_and_stopped.killed, cases))


@every_phase
def test_killed_again_at_every_point_of_every_recovery_it_is_done_once(enumeration: Enumeration, phase: str) -> None:
    """A recovery is a function of the durable state: each state is recovered from once, whatever led to it. The states
    are closed under kills, so that this goes for any number of them. Killed around every step that may last: between
    two of them a kill leaves what the one before it leaves."""
    if enumeration.is_short:
        pytest.skip("states are closed by `make crashes`")
    graph, elsewhere = enumeration.graph(phase), enumeration.known_elsewhere(phase)
    assert phase in KILLS or graph.unknown() == {}
    cases = [
        (f"killed at {known.kills}, then {_name(known, point)}", (graph, known, point))
        for known in graph
        if known.fingerprint not in elsewhere
        for point in known.points(known.lasting)
    ]
    enumeration.do(phase, "killed again in every recovery", jobs(killed_and_stopped.killed, cases))


@pytest.mark.parametrize("phase", ["snapshot", "reconcile", "certify", "merge"])
def test_killed_at_every_file_it_leaves_none_that_housekeeping_does_not_know(
    enumeration: Enumeration, phase: str
) -> None:
    """Killed after each step that leaves a file or takes one away; the window and the next one are certified, and what
    is done each night is done long afterwards."""
    if enumeration.is_short and phase != "certify":
        pytest.skip("the files of certificates are enough for every change")
    start = enumeration.graph(phase).start
    steps = [number for number, name in enumerate(start.steps) if name.startswith(("store: ", "storage: "))]
    points = sorted({start.after(number) for number in steps if may_last(start.steps[number])})
    cases = [(_name(start, point), (phase, point)) for point in points]
    enumeration.do(phase, "killed, files left by it removed", jobs(swept.swept, cases))


@every_phase
def test_a_zombie_that_wakes_afterwards_adds_nothing(enumeration: Enumeration, phase: str) -> None:
    """Takes long: for each point a runner is stopped, and another one does its work."""
    if enumeration.is_short and phase not in ("compensate", "datasets"):
        pytest.skip("of zombies, those that write what a plan says are enough for every change")
    graph = enumeration.graph(phase)
    cases = [(_name(graph.start, point), (graph, point)) for point in enumeration.points(phase)]
    enumeration.do(phase, "stopped, woken when all is done", jobs(killed_and_stopped.woken_afterwards, cases))


@writing
def test_a_zombie_whose_lease_expired_adds_nothing(enumeration: Enumeration, phase: str) -> None:
    """The second runner has another name. At the points around each change: what a lease has to do with the others is
    shown by the runs under the same name."""
    if enumeration.is_short:
        pytest.skip("leases that expire are waited for by `make crashes`")
    graph = enumeration.graph(phase)
    cases = [(_name(graph.start, point), (graph, point)) for point in graph.start.points(graph.start.changes)]
    enumeration.do(
        phase, "stopped, another name takes over", jobs(killed_and_stopped.woken_afterwards_by_another, cases)
    )


@writing
def test_a_zombie_whose_plan_was_ended_adds_nothing(enumeration: Enumeration, phase: str) -> None:
    """A plan that a later revision ended writes nothing more, whatever its runner was about to do."""
    if enumeration.is_short and phase != "compensate":
        pytest.skip(_OF_TOPIC_AND_TABLE)
    cases = _alive(enumeration, phase)
    enumeration.do(phase, "stopped, its plan is ended", jobs(killed_and_stopped.woken_after_its_plan_ended, cases))


@writing
def test_a_zombie_whose_plan_was_undone_adds_nothing(enumeration: Enumeration, phase: str) -> None:
    """Check that what is undone is all that there is to undo."""
    if enumeration.is_short:
        pytest.skip("of plans that are no longer to be done, those that were ended are enough for every change")
    cases = _alive(enumeration, phase)
    enumeration.do(
        phase, "stopped, its plan is undone", jobs(killed_and_stopped.woken_after_its_plan_was_undone, cases)
    )


@pytest.mark.parametrize("phase", ["freeze", "approve", "compensate", "datasets"])
def test_a_zombie_that_wakes_while_the_next_one_works_adds_nothing(enumeration: Enumeration, phase: str) -> None:
    """Stopped around every change of its own, woken at every moment between two changes of the second runner."""
    if enumeration.is_short:
        pytest.skip("pairs of points are a matter of `make crashes`")
    graph = enumeration.graph(phase)
    cases = [
        (f"{_name(graph.start, point)}, woken when the next is {_name(known, moment)}", (graph, point, moment))
        for point, known, moment in _pairs(enumeration, phase)
    ]
    enumeration.do(phase, "stopped, woken while the next works", jobs(killed_and_stopped.woken_meanwhile, cases))
    enumeration.do(phase, "stopped, woken when the next is killed", jobs(killed_and_stopped.woken_between, cases))


@every_phase
def test_a_connection_to_postgres_dropped_at_any_request_changes_nothing(enumeration: Enumeration, phase: str) -> None:
    """Answers are lost to what may last: any other request is undone with its transaction, done or not."""
    if enumeration.is_short and phase != "compensate":
        pytest.skip("of sessions that are cut off, those of the phase that writes are enough for every change")
    graph = enumeration.graph(phase)
    cases = [
        (f"{how} at step {step}, {graph.start.steps[step]}", (graph, step, how))
        for how in (dropped_connections.POSTGRES_FAULTS if not enumeration.is_short else [LOSE])
        for step in enumeration.steps(phase)
        if graph.start.steps[step].startswith(("journal:", "target:", "catalog:"))
        and (how == CUT or may_last(graph.start.steps[step]))
    ]
    enumeration.do(phase, "connection to PostgreSQL dropped", jobs(dropped_connections.drop_postgres_connection, cases))


@replaying
def test_a_connection_to_kafka_dropped_at_any_request_changes_nothing(enumeration: Enumeration, phase: str) -> None:
    if enumeration.is_short:
        pytest.skip("requests to Kafka are counted by `make crashes`")
    graph, proxy = enumeration.graph(phase), enumeration.servers.proxy
    cases = [
        (f"{how} at {api.name} {number}", (proxy, graph, api, number, how))
        for how in dropped_connections.KAFKA_FAULTS
        for api, number in _requests(enumeration, phase)
    ]
    steady = sum(api not in UNSTEADY for _, (_, _, api, _, _) in cases)
    enumeration.do(
        phase, "connection to Kafka dropped", jobs(dropped_connections.drop_kafka_connection, cases), points=steady
    )


@pytest.mark.parametrize("phase", ["compensate"])
def test_a_request_to_kafka_that_arrives_much_later_changes_nothing(enumeration: Enumeration, phase: str) -> None:
    if enumeration.is_short:
        pytest.skip("requests to Kafka are counted by `make crashes`")
    graph, proxy = enumeration.graph(phase), enumeration.servers.proxy
    cases = [
        (f"{api.name} {number}, late", (proxy, graph, api, number))
        for api, number in _requests(enumeration, phase)
        if api not in AT_WILL
    ]
    steady = sum(api not in UNSTEADY for _, (_, _, api, _) in cases)
    enumeration.do(phase, "request to Kafka late", jobs(dropped_connections.delay_kafka_request, cases), points=steady)


def test_no_kind_of_fault_is_left_out(enumeration: Enumeration) -> None:
    """The last of all: what was recorded was done."""
    if enumeration.is_recording or enumeration.is_part:
        pytest.skip("only a part was asked for, or what is there is to be recorded")
    assert list(points.complaints(enumeration.section, enumeration.kinds)) == []


def _name(known: KnownState, point: int) -> str:
    return f"{known.name(point)} (point {point})"


def _alive(enumeration: Enumeration, phase: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Around each step that is enumerated; but of steps that are silent, only the one after them."""
    start = enumeration.graph(phase).start
    points = [
        point
        for point in enumeration.points(phase)
        if enumeration.is_short or not SILENT.fullmatch(start.steps[point // 2])
    ]
    return [(_name(start, point), (enumeration.graph(phase), point)) for point in points]


def _pairs(enumeration: Enumeration, phase: str) -> list[tuple[int, KnownState, int]]:
    """(point of the zombie, what the second one does, point of the second one): each around its changes."""
    graph = enumeration.graph(phase)
    cases = []
    for point in graph.start.points(graph.start.changes):
        known = graph.states[graph.start.state_at(point)]
        cases += [(point, known, 2 * change + 1) for change in known.changes]
    return cases


def _requests(enumeration: Enumeration, phase: str) -> list[tuple[Api, int]]:
    """Every request of an undisturbed run, by kind and number."""
    graph, proxy = enumeration.graph(phase), enumeration.servers.proxy
    runs = jobs(dropped_connections.count_kafka_requests, [("count", (proxy, graph))] * 4)
    counted = enumeration.do(phase, "requests to Kafka counted", runs, points=0)
    most = counted[0] | counted[1] | counted[2] | counted[3]
    for api in most:
        assert api in UNSTEADY or {count[api] for count in counted} == {most[api]}, (
            f"{api.name}: not the same in each run"
        )
    return [(api, number) for api in sorted(most) for number in range(1, most[api] + 1)]
