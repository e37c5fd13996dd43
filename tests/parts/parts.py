"""List the parts that the tests have, and in which order or side by side they run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Part:
    """Tests that pytest runs at once. `arguments`: for pytest, the folders among them; `folders`: those below `tests`
    whose tests are counted apart, of a part that has several. `gives_way`: it runs at a lower priority than the parts
    beside it."""

    name: str
    arguments: tuple[str, ...]
    folders: tuple[str, ...] = ()
    gives_way: bool = False


def _part(name: str, *arguments: str, marker: str = "", processes: int = 1) -> Part:
    """Return the part of a marker, by default its name. Several processes have servers of their own each."""
    divided = ("-n", f"{processes}", "--dist", "worksteal") if processes > 1 else ()
    return Part(name=name, arguments=("-m", marker or name, *divided, *arguments))


def _on_servers(*arguments: str) -> Part:
    """Return the tests that share servers: to start them and to load what asks them takes a minute for each part."""
    folders = ("integration", "histories", "lab")
    part = _part(
        "on-servers",
        *(f"tests/{folder}" for folder in folders),
        *("--lab-rows", "short", *arguments),
        marker="(integration or histories or lab) and not extended",
        processes=3,  # of three one waits, for a server that starts or a time that has to pass
    )
    return replace(part, folders=folders)


def _yielding(part: Part) -> Part:
    return replace(part, gives_way=True)


_UNIT = _part("unit", "tests/unit", processes=2)
_INTEGRATION = _part("integration", "tests/integration", marker="integration and not extended", processes=3)
_E2E = _part("e2e", "tests/e2e", marker="e2e and not extended")
_LAB = _part("lab", "tests/lab", "--lab-rows", "short", processes=2)
_CRASH = _part("crash", "tests/crash", "--crash-points", "short")
_HISTORIES = _part("histories", "tests/histories", processes=2)
_FUZZ = _part("fuzz", "tests/fuzz")
_WINDOWS = _part(
    "windows",
    *(f"tests/integration/spark/test_{name}.py" for name in ("windows", "versions", "replays", "faults_of_logs")),
    marker="integration and not extended and not on_spark",
)
_EXTENDED = _part(
    "extended", "tests/integration", "tests/histories", "--histories", "2", marker="extended", processes=2
)
# Every process that runs one of them starts an Airflow, and has all of them play there.
_SCENARIOS = _part("scenarios", "tests/e2e", "--ignore", "tests/e2e/dying_parts", marker="extended")
_DYING_PARTS = _part("dying-parts", "tests/e2e/dying_parts", marker="extended")
_ON_SPARK = _part(
    "on-spark", "tests/integration/spark", "--on-spark", marker="integration and not extended", processes=2
)

PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        *(_UNIT, _INTEGRATION, _E2E, _LAB, _CRASH, _HISTORIES, _FUZZ, _WINDOWS),
        *(_EXTENDED, _SCENARIOS, _DYING_PARTS, _ON_SPARK),
    )
}

STAGES: Mapping[str, Sequence[Sequence[Part]]] = {
    # An Airflow waits for a third of its time, and is what the first stage waits for.
    "test": [[_E2E, _yielding(_UNIT), _yielding(_CRASH), _yielding(_FUZZ)], [_on_servers("--histories", "1")]],
    "test-fast": [[_UNIT, _WINDOWS]],
    "test-all": [
        *([_UNIT], [_on_servers()], [_E2E], [_CRASH], [_FUZZ]),
        *([_EXTENDED], [_SCENARIOS], [_DYING_PARTS], [_ON_SPARK]),
    ],
}
"""The parts of each set, stage by stage: those of a stage run side by side."""
