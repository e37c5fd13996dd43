"""Test a broker that stops answering in the middle of a commit: the outcome is asked for, never guessed."""

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from makewhole.compensation.execution.run_plan import run_plan
from makewhole.journal import replayed_positions
from makewhole.journal.replayed_positions import WrittenChunk
from makewhole.kafka import replay
from makewhole.model.errors import TransientError
from makewhole.model.positions import RecordPositions
from makewhole.model.verdict import Verdict
from makewhole.sql import PgConnection
from makewhole.stack.process import ServerProcess
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

RECORDS = 100


@pytest.mark.extended
def test_an_unknown_commit_is_resolved_from_the_marker(
    world: PlanWorld, server_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: the broker stands still for longer than a writer waits, again and again."""
    broker = _broker_pid(server_folder)
    monkeypatch.setattr(replay, "_TIMEOUT_SECONDS", 1.0)
    world.send(range(RECORDS))
    plan = world.plan([world.finding(number, Verdict.MISSING) for number in range(RECORDS)])
    chance = random.Random(30)
    opened: list[replay.ReplayWriter] = []
    really_open = replay.ReplayWriter.open

    def counting_open(writer: replay.ReplayWriter) -> int | None:
        opened.append(writer)
        return really_open(writer)

    monkeypatch.setattr(replay.ReplayWriter, "open", counting_open)

    really_put = replayed_positions.put

    def freeze_the_broker(journal: PgConnection, chunk: WrittenChunk, positions: RecordPositions) -> None:
        """The records are at the broker, and what is left is to commit them.

        Frozen at once and for longer than the writer waits, the commit is interrupted, unless the machine is so busy
        that the writer asks for it only when the broker answers again. So there are more than the two that count.
        """
        really_put(journal, chunk, positions)
        delay = delays.pop(chunk.chunk, None)
        if delay is None:
            return
        if delay == 0.0:
            os.kill(broker, signal.SIGSTOP)
        else:
            threading.Timer(delay, os.kill, (broker, signal.SIGSTOP)).start()
        threading.Timer(3.0 if delay == 0.0 else 2.0, os.kill, (broker, signal.SIGCONT)).start()

    delays = {2: 0.0, 4: 0.0, 6: 0.0, 7: chance.uniform(0.0, 0.02), 9: 0.0}
    monkeypatch.setattr(replayed_positions, "put", freeze_the_broker)
    for _ in range(10):
        with suppress(TransientError):
            run_plan(world.journal, plan.id, world.targets)
            break
    os.kill(broker, signal.SIGCONT)
    assert len(opened) > 2, "no two commits were interrupted"
    keys = Counter(record.key_text for record in world.replayed())
    assert keys == {f"K{number}": 1 for number in range(RECORDS)}
    assert [receipt.chunk for receipt in world.run(plan.id)] == list(range(RECORDS // 5))


def _broker_pid(server_folder: Path) -> int:
    (pid_file,) = (server_folder / "kafka").glob("*/*.pid")  # its data come and go meanwhile
    pid = ServerProcess(name=pid_file.stem, directory=pid_file.parent).pid()
    assert pid is not None
    return pid
