"""A broker that stops answering in the middle of a commit: the outcome is unknown, and is asked, never guessed."""

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import run_plan
from makewhole.kafka import replay
from makewhole.model.errors import TransientError
from makewhole.model.verdict import Verdict
from makewhole.stack.process import ServerProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

RECORDS = 100


def test_an_unknown_commit_is_resolved_from_the_marker(
    world: Any, server_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = _broker_pid(server_folder)
    monkeypatch.setattr(replay, "_TIMEOUT_SECONDS", 2.0)
    world.send(range(RECORDS))
    plan = world.freeze([world.finding(number, Verdict.MISSING) for number in range(RECORDS)]).plan
    chance, opened = random.Random(30), []
    really_open = replay.ReplayWriter.open
    monkeypatch.setattr(replay.ReplayWriter, "open", lambda self: opened.append(1) or really_open(self))

    def freeze_the_broker(progress: Any) -> None:
        if progress.chunks_done % 5 == 2:
            threading.Timer(chance.uniform(0.0, 0.04), os.kill, (broker, signal.SIGSTOP)).start()
            threading.Timer(3.5, os.kill, (broker, signal.SIGCONT)).start()

    for _ in range(10):
        with suppress(TransientError):
            run_plan(world.journal, plan.id, world.targets, freeze_the_broker)
            break
    os.kill(broker, signal.SIGCONT)
    assert len(opened) > 2, "no commit was interrupted"
    keys = Counter(message.key().decode() for message in world.replayed())
    assert keys == {f"K{number}": 1 for number in range(RECORDS)}
    assert [receipt.chunk for receipt in world.run(plan.id)] == list(range(RECORDS // 5))


def _broker_pid(server_folder: Path) -> int:
    (pid_file,) = (server_folder / "kafka").rglob("*.pid")
    pid = ServerProcess(name=pid_file.stem, directory=pid_file.parent).pid()
    assert pid is not None
    return pid
