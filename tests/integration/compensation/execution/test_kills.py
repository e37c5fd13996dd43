"""Test that everything is written exactly once when the runner is killed, stopped and woken, or doubled."""

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld
from tests.world.examples import seeds

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

KILLS = len(seeds(20))
MISSING, MISMATCHED = 30, 620  # of the first, seven kills get beyond the end however slow the machine is


class Runners:
    """Runner processes of one world, and what they say."""

    def __init__(self, world: PlanWorld) -> None:
        self._world = world
        script = Path(__file__).with_name("replay_process.py")
        self._parent = subprocess.Popen(
            [sys.executable, str(script), world.topic, world.bootstrap, world.dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said: queue.Queue[list[str]] = queue.Queue()
        self._ended: dict[int, str] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, plan: str, holder: str = "task", rate: int | None = None) -> int:
        order = {"journal": self._world.journal, "plan": plan, "holder": holder, "rate": rate}
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        while True:
            words = self._said.get(timeout=20)
            if words[0] == "started":
                return int(words[1])
            self._ended[int(words[1])] = words[2]

    def outcome(self, pid: int) -> str:
        while pid not in self._ended:
            words = self._said.get(timeout=60)
            self._ended[int(words[1])] = words[2]
        return self._ended[pid]

    def close(self) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(timeout=20)

    def _listen(self) -> None:
        assert self._parent.stdout is not None
        for line in self._parent.stdout:
            self._said.put(line.split())


@pytest.fixture
def runners(world: PlanWorld) -> Iterator[Runners]:
    made = Runners(world)
    yield made
    made.close()


@pytest.mark.extended
def test_kills_leave_every_record_and_row_exactly_once(world: PlanWorld, runners: Runners) -> None:
    """Takes long: runners start one after the other, and each has to write before it is killed."""
    plan = _big_plan(world)
    chance = random.Random(20)
    done_after = []
    for _ in range(KILLS):
        pid = runners.start(plan, rate=100)
        seen = _chunks(world, plan)
        _wait_until(partial(_is_ahead, world, plan, seen))
        time.sleep(chance.uniform(0.0, 0.2))
        os.kill(pid, signal.SIGKILL)
        done_after.append(_chunks(world, plan))
    assert done_after[0] < MISSING // 5 < done_after[-1], "the kills must land at both targets"
    assert done_after[-1] < (MISSING + MISMATCHED) // 5, "the plan was done before the last kill: make it longer"

    assert runners.outcome(runners.start(plan)) == "done"
    _assert_exactly_once(world, plan)
    assert runners.outcome(runners.start(plan)) == "done"
    _assert_exactly_once(world, plan)


@pytest.mark.extended
def test_a_runner_that_wakes_after_a_take_over_writes_nothing_more(world: PlanWorld, runners: Runners) -> None:
    plan = _big_plan(world)
    chance = random.Random(28)
    zombies = []
    for _ in range(4):
        pid = runners.start(plan)
        seen = _chunks(world, plan)
        _wait_until(partial(_is_ahead, world, plan, seen))
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(pid, signal.SIGSTOP)
        zombies.append(pid)
    last = runners.start(plan)
    seen = _chunks(world, plan)
    _wait_until(lambda: _chunks(world, plan) > seen)
    for pid in zombies:
        os.kill(pid, signal.SIGCONT)
    # Stopped inside a transaction, it finds that the server has ended it.
    assert {runners.outcome(pid) for pid in zombies} <= {"LeaseLostError", "TransientError"}
    # A zombie that woke inside `init_transactions` may fence the rightful runner, which then asks and carries on.
    assert runners.outcome(last) == "done"
    _assert_exactly_once(world, plan)


def test_of_two_runners_at_once_one_works(world: PlanWorld, runners: Runners) -> None:
    plan = _big_plan(world, missing=60, mismatched=30)
    first, second = runners.start(plan, holder="one", rate=100), runners.start(plan, holder="two", rate=100)
    assert sorted([runners.outcome(first), runners.outcome(second)]) == ["TransientError", "done"]
    _assert_exactly_once(world, plan, missing=60, mismatched=30)


def _big_plan(world: PlanWorld, missing: int = MISSING, mismatched: int = MISMATCHED) -> str:
    world.send(range(missing + mismatched))
    world.sql(
        "insert into dw.departures (id, delay) select 'K' || n, -1 from generate_series(%s, %s) as n",
        missing,
        missing + mismatched - 1,
    )
    findings = [world.finding(number, Verdict.MISSING) for number in range(missing)]
    findings += [world.finding(number, Verdict.MISMATCHED) for number in range(missing, missing + mismatched)]
    return str(world.plan(findings).id)


def _is_ahead(world: PlanWorld, plan: str, chunks: int) -> bool:
    return _chunks(world, plan) > chunks


def _chunks(world: PlanWorld, plan: str) -> int:
    return int(world.journal_sql("select count(*) from makewhole.chunk where plan = %s", plan)[0][0])


def _wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "the runner makes no progress"
        time.sleep(0.02)


def _assert_exactly_once(world: PlanWorld, plan: str, missing: int = MISSING, mismatched: int = MISMATCHED) -> None:
    replayed = world.replayed()
    assert Counter(message.key_text for message in replayed) == {f"K{number}": 1 for number in range(missing)}
    by_seq = Counter(int(message.header_texts["makewhole-seq"]) for message in replayed)
    assert by_seq == dict.fromkeys(range(missing), 1)
    assert world.sql(
        "select count(*), count(distinct id), bool_and(delay = substr(id, 2)::int) from dw.departures"
    ) == [(mismatched, mismatched, True)]
    assert world.sql("select chunk, actions from makewhole.receipt where plan = %s order by chunk", plan) == [
        (chunk, 5) for chunk in range(mismatched // 5)
    ]
    assert world.journal_sql(
        "select target, count(*), min(chunk), max(chunk), sum(actions) from makewhole.chunk where plan = %s "
        "group by target order by target",
        plan,
    ) == [
        ("flights", missing // 5, 0, missing // 5 - 1, missing),
        ("warehouse", mismatched // 5, 0, mismatched // 5 - 1, mismatched),
    ]
    assert set(world.outcomes(plan).values()) == {("done", None)}
    assert world.journal_sql("select state from makewhole.plan where id = %s", plan) == [("done",)]
