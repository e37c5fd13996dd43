"""Write the results of the enumeration into docs/crashes.json, and make the page docs/crashes.md of them.

python -m tests.crash.report        writes the page again from the results that are there
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.crash.enumeration import PHASES, Enumeration
from tests.crash.states.state_graph import StateGraph

RESULTS = Path(__file__).parents[2] / "docs" / "crashes.json"
PAGE = RESULTS.with_suffix(".md")

_HEAD = """\
<!-- Made by `make crashes` from docs/crashes.json. Do not edit: run it again. -->

# Where windows and compensation were killed, stopped and cut off

A plan is carried out exactly once, and a window has one verdict and one certificate, whatever happens to whoever works
at it. `make crashes` shows it by trying: every call that a runner makes to the outside, to Kafka, to the journal, to
the target's PostgreSQL, to the catalogue and the files of datasets, and to the files of the storage, is a step, and
before and after each step is a point where something may happen to it. All of them are tried; none is drawn by lot. The
steps are found by watching a run, so that a call that is added to the service is a step of the next run; their number
is written down in tests/crash/points.json, and a smaller one fails.

After each: one committed copy of every record, one receipt for every chunk, the plan done, the table as it shall be,
the journal in agreement with both, and nothing left open: the same state, row by row, as an undisturbed run leaves.

A recovery is a new process and can only read what is durable. So the state that each kill leaves is read from outside
(every row of ours in both databases, the tables that are repaired, the committed records, the marker, the transaction,
the files), and each state that differs is recovered from and killed again at every point of that recovery, until no
kill leaves a state that was not seen: that is every number of kills, one after the other.

Of a window, the state is the whole journal and every file that it names, by what is in it: the next run leaves the same
verdicts, in the same bytes. Files of an attempt that died are named by nothing; `keep: {attempts: 7d}` removes them.

| phase | what happens | points | cases | came out whole |
|---|---|---:|---:|---:|
"""

_PHASES = {
    "freeze": "A plan is frozen: payload file, plan, actions.",
    "approve": "A person says yes to it.",
    "compensate": "It is carried out: two chunks into a topic, two into a table, an action in each cannot be done.",
    "first": "The same where no plan has run before: the topic of the markers is made.",
    "marker lost": "Taken up again after a kill, when the marker has expired: the topic itself is asked.",
    "supersede": "A later revision ends a plan that was killed between a commit and the journal, and plans again.",
    "undo": "The undoing of a plan is frozen.",
    "restore": "It is carried out: rows put back, brought back from quarantine, taken out.",
    "datasets freeze": "The same for a plan that writes to an Iceberg table and to a dataset of files.",
    "datasets": "It is carried out: two chunks into the table, two into files, an action in each cannot be done.",
    "datasets undo": "The undoing of it is frozen.",
    "datasets restore": "It is carried out.",
    "avro freeze": "A plan of records that are made: of a ledger's rows, and as reversals, in Avro.",
    "avro": "It is carried out: three chunks.",
    "protobuf freeze": "The same in Protobuf.",
    "protobuf": "It is carried out.",
    "connect freeze": "The same in the values of Connect.",
    "connect": "It is carried out.",
    "open": "A window is opened: its ranges are frozen. Three days before it are certified.",
    "snapshot": "Its points are read: a ledger, a topic, a table.",
    "reconcile": "They are compared: one order is missing, one there twice, one differs; the file tolerates it.",
    "validate": "The gate is asked.",
    "certify": "It is certified, and the anchor of its certificate written.",
    "merge": "The runs of the key index are merged, and those before removed.",
    "keep": "Archives and files of attempts that died are removed, which were kept long enough.",
}


def record(results: Path, made: Enumeration) -> None:
    """Put what was done into the results file, in place of what was done before."""
    everything = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {"kinds": {}, "phases": {}}
    for row in made.rows:
        if row.points:
            everything["kinds"][row.kind] = {
                "phase": row.phase,
                "what": row.what,
                "points": row.points,
                "cases": row.cases,
                "failed": row.failed,
            }
    for phase in PHASES:
        if made.is_explored(phase):
            everything["phases"][phase] = _phase(made.graph(phase))
    results.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page(results: Mapping[str, Any]) -> str:
    """Return the whole page."""
    kinds = sorted(results["kinds"].values(), key=lambda kind: PHASES.index(kind["phase"]))
    rows = [
        f"| {kind['phase']} | {kind['what']} | {kind['points']:,} | {kind['cases']:,} | "
        f"{kind['cases'] - kind['failed']:,} |\n"
        for kind in kinds
    ]
    points, cases, failed = (sum(kind[name] for kind in kinds) for name in ("points", "cases", "failed"))
    rows.append(f"| all | | {points:,} | {cases:,} | {cases - failed:,} |\n")
    sections = [(phase, results["phases"][phase]) for phase in PHASES if phase in results["phases"]]
    return _HEAD + "".join(rows) + "".join("\n".join(_section(phase, result)) + "\n" for phase, result in sections)


def _phase(graph: StateGraph) -> dict[str, Any]:
    return {
        "steps": list(graph.start.steps),
        "changes": list(graph.start.changes),
        "states": [{"kills": len(known.kills), "steps": len(known.steps), "is": known.summary} for known in graph],
    }


def _section(phase: str, result: Mapping[str, Any]) -> Iterator[str]:
    steps, changes, states = result["steps"], set(result["changes"]), result["states"]
    yield f"\n## {phase}\n"
    yield f"{_PHASES[phase]} {len(steps)} steps; those in bold change what is durable:\n"
    names = [f"**{name}**" if number in changes else name for number, name in enumerate(steps)]
    yield " · ".join(f"{count} × {name}" if count > 1 else name for name, count in _runs(names))
    yield f"\n{len(states)} states that kills leave, each with the fewest kills after which it was met:\n"
    yield "| kills | steps of its recovery | state |"
    yield "|---:|---:|---|"
    for state in states:
        yield f"| {state['kills']} | {state['steps']} | {state['is']} |"


def _runs(names: list[str]) -> Iterator[tuple[str, int]]:
    """Yield neighbours that are alike, and how many."""
    count = 0
    for number, name in enumerate(names):
        count += 1
        if number + 1 == len(names) or names[number + 1] != name:
            yield name, count
            count = 0


def main() -> None:
    """Write the page from the results that are there."""
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
