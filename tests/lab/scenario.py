"""Define a scenario of the fault lab: one fault, made on a real cluster, whose truth is known beforehand.

    @scenario(row=1, name="…", happens="…", made="…", why="…")
    def markers(lab: Lab) -> Outcome: …

A scenario varies by its seed (`lab.random`), never by chance. It makes the fault, asks the checks that people build by
hand (`tests/lab/naive.py`), walks makewhole's real steps, and returns what all of them said beside what is right.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any

from pytest import MonkeyPatch

from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_kafka
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer
from tests.lab.servers.cluster import LabCluster
from tests.lab.shop import LabShop
from tests.world.environment import set_connection
from tests.world.java_clients import JavaClients

_FROM_LEDGER = "outbox→"
"""The name of every hop from the ledger begins so."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """A judged window, with what is right. `label` names it for the reader."""

    judged: Judged
    expected: Judged
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Naive:
    """The answer of a check that people build by hand, and the (false or true) conclusion that it is known to draw."""

    answer: NaiveAnswer
    expected: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Hold what a run of a scenario gave. `truth` in words, with its figures."""

    truth: str
    naive: tuple[Naive, ...]
    windows: tuple[Window, ...]


@dataclass(kw_only=True)
class Lab:
    """Hold what a scenario works with. What it starts is handed to `ends`, and ended whatever happens."""

    seed: int
    cluster: LabCluster
    shop: LabShop
    java: Callable[[], JavaClients]
    ends: ExitStack
    random: Random
    patch: MonkeyPatch

    def through_proxy(self) -> None:
        """From now on makewhole reaches the cluster through the proxy."""
        set_connection(self.patch, "log", connection_kafka(self.cluster.proxied_bootstrap))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A fault of the table, and how it is described in docs/faults.md.

    `covered_by`: other tests of the service that prove more of the same. `is_short`: belongs to the selection that
    every change runs.
    """

    row: int
    name: str
    happens: str
    made: str
    why: str
    run: Callable[[Lab], Outcome]
    covered_by: tuple[str, ...] = ()
    is_short: bool = False

    @property
    def id(self) -> str:
        return f"{self.row:02d}-{self.run.__name__}"


SCENARIOS: dict[str, Scenario] = {}
"""All scenarios by id, once `load` has run."""


def scenario(**about: Any) -> Callable[[Callable[[Lab], Outcome]], Callable[[Lab], Outcome]]:
    """Register a scenario; the arguments are those of `Scenario`."""

    def register(run: Callable[[Lab], Outcome]) -> Callable[[Lab], Outcome]:
        made = Scenario(run=run, **about)
        assert made.id not in SCENARIOS, f"{made.id} is there twice"
        SCENARIOS[made.id] = made
        return run

    return register


def load() -> dict[str, Scenario]:
    """All scenarios of the modules in tests/lab/scenarios, in the order of the table."""
    here = Path(__file__).parent
    for module in sorted((here / "scenarios").rglob("*.py")):
        name = module.relative_to(here).with_suffix("").as_posix().replace("/", ".")
        importlib.import_module(f"tests.lab.{name}")
    return {name: SCENARIOS[name] for name in sorted(SCENARIOS, key=in_table)}


def in_table(name: str) -> tuple[int, str]:
    """Return by what the ids of scenarios are sorted: the number of the row, and the id."""
    return int(name.split("-")[0]), name


def selected(rows: str) -> list[Scenario]:
    """The scenarios of `1,2,9`, of `short`, or all; in the order of the table."""
    everything = list(load().values())
    if rows == "short":
        return [scenario for scenario in everything if scenario.is_short]
    wanted = {int(row) for row in rows.split(",") if row}
    unknown = wanted - {scenario.row for scenario in everything}
    assert not unknown, f"the lab has no rows {sorted(unknown)}"
    return [scenario for scenario in everything if not wanted or scenario.row in wanted]


def check(outcome: Outcome) -> None:
    """Check that every window is judged as it should be, and every naive check says what it is known to say."""
    wrong = [
        f"{window.label or 'the window'}: {difference}"
        for window in outcome.windows
        for difference in _differences(window)
    ]
    wrong += [
        f"{naive.answer.check}: {naive.answer.text}: it concludes {naive.answer.conclusion}, known is {naive.expected}"
        for naive in outcome.naive
        if naive.answer.conclusion != naive.expected
    ]
    assert not wrong, "\n".join([outcome.truth, *wrong])


def _right_reach(expected: Judged) -> str | None:
    """A certified window is proven from the ledger on where one leads into the topic, or into the table."""
    if expected.state != WindowState.CERTIFIED.value:
        return None
    return "ledger" if any(hop.startswith(_FROM_LEDGER) for hop in expected.matched) else "log"


def _differences(window: Window) -> Iterator[str]:
    """Part by part. A reason goes on with figures and advice: its beginning has to be right."""
    for part in fields(Judged):
        judged, expected = (getattr(side, part.name) for side in (window.judged, window.expected))
        if part.name == "reach":
            expected = _right_reach(window.expected)
        if not part.compare:
            continue
        if part.name == "reason" and judged is not None and expected is not None:
            judged = judged[: len(expected)]
        if judged != expected:
            yield f"{part.name} is {judged}, right is {expected}"
