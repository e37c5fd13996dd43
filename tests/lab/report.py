"""Write the results of a lab run into docs/faults.json, and make the page docs/faults.md of them.

python -m tests.lab.report        writes the page again from the results that are there
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.lab.scenario import Outcome, Scenario, in_table, load

RESULTS = Path(__file__).parents[2] / "docs" / "faults.json"
PAGE = RESULTS.with_suffix(".md")

_HEAD = """\
<!-- Made by `make lab` from docs/faults.json and tests/lab/scenarios. Do not edit: change those and run it again. -->

# Faults, what a check built by hand says, and what makewhole says

Every row below happened: `make lab` makes it on a real cluster of three brokers and a controller, asks the checks that
people build by hand, walks makewhole's real steps over it, and compares both with what is known to be true. The figures
are those of seed 1; `make lab LAB_ARGS="--lab-seeds 10"` runs every fault in ten variations.

A window that is **certified** is proven from the ledger on; one that is **certified, from the log** only from what is
in the topic on, because no ledger says what was sent. Its section lists what its certificate does not exclude. Keys
that are *handed over* are the next window's to judge; of keys *`before_baseline`* nothing is said.

| # | fault | a check built by hand | makewhole |
|---|---|---|---|
"""


def record(results: Path, scenario: Scenario, outcome: Outcome) -> None:
    """Put the outcome into the results file, in place of the one before."""
    everything = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    everything[scenario.id] = {
        "truth": outcome.truth,
        "naive": [
            {"check": naive.answer.check, "text": naive.answer.text, "conclusion": naive.answer.conclusion}
            for naive in outcome.naive
        ],
        "windows": [{"label": window.label, **window.judged.to_json()} for window in outcome.windows],
    }
    text = json.dumps(
        {name: everything[name] for name in sorted(everything, key=in_table)}, indent=1, ensure_ascii=False
    )
    results.write_text(text + "\n", encoding="utf-8")


def page(scenarios: Mapping[str, Scenario], results: Mapping[str, Any]) -> str:
    """Return the whole page; scenarios that have no result yet are left out."""
    ran = [(scenario, results[scenario.id]) for scenario in scenarios.values() if scenario.id in results]
    rows = "".join(_row(scenario, result) for scenario, result in ran)
    return _HEAD + rows + "".join(_section(scenario, result) for scenario, result in ran)


def _row(scenario: Scenario, result: Mapping[str, Any]) -> str:
    naive = "; ".join(dict.fromkeys(item["conclusion"] for item in result["naive"]))
    link = f"[{scenario.name}](#{anchor(scenario)})"
    return (
        f"| {scenario.row} | {link} | {naive or '–'} | {'; '.join(_short(window) for window in result['windows'])} |\n"
    )


def anchor(scenario: Scenario) -> str:
    """Return the anchor of a scenario's section, as GitHub makes it of its title."""
    kept = "".join(sign for sign in _title(scenario).lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")


def _title(scenario: Scenario) -> str:
    return f"{scenario.row} {scenario.name}"


def _short(window: Mapping[str, Any]) -> str:
    parts = [_state(window)]
    counts = [f"{count} {_verdict(window, verdict, cause)}" for _, verdict, cause, count in _found(window)]
    parts += list(dict.fromkeys(counts))
    parts += list(dict.fromkeys(f"{count} `before_baseline`" for count in _before(window).values()))
    parts += list(dict.fromkeys(f"incident `{kind}`" for kind, *_ in window["incidents"]))
    parts += window.get("messages", [])
    return ", ".join(parts)


def _state(window: Mapping[str, Any]) -> str:
    since = ", from the log" if window.get("reach") == "log" else ""
    state = f"**{window['state'].replace('_', ' ')}{since}**"
    return f"{window['label']}: {state}" if window["label"] else state


def _verdict(window: Mapping[str, Any], verdict: str, cause: str) -> str:
    """Return the word for a verdict; what is pending in a certified window is handed over to the next one."""
    is_handed_over = verdict == "pending" and window["state"] == "certified"
    return f"{'handed over' if is_handed_over else verdict} (`{cause}`)"


def _found(window: Mapping[str, Any]) -> Iterator[tuple[str, str, str, int]]:
    for hop, verdicts in window["found"].items():
        for verdict, cause, count in verdicts:
            yield hop, verdict, cause, count


def _before(window: Mapping[str, Any]) -> Mapping[str, int]:
    keys: Mapping[str, int] = window.get("before_baseline", {})
    return keys


def _section(scenario: Scenario, result: Mapping[str, Any]) -> str:
    lines = [
        f"\n## {_title(scenario)}\n",
        f"{scenario.happens} {result['truth']}\n",
        f"*In the lab:* {scenario.made}\n",
    ]
    if result["naive"]:
        lines.append("*A check built by hand:*\n")
        lines += [f"- {item['check']}: {item['text']}: **{item['conclusion']}**" for item in result["naive"]]
        lines.append("")
    lines.append("*makewhole:*\n")
    lines += [line for window in result["windows"] for line in _whole(window)]
    lines += ["", scenario.why]
    if scenario.covered_by:
        lines += ["", f"More of the same: {', '.join(f'`{name}`' for name in scenario.covered_by)}."]
    return "\n".join(lines) + "\n"


def _whole(window: Mapping[str, Any]) -> Iterator[str]:
    yield f"- {_state(window)}"
    accounting = {name: count for name, count in window["accounting"].items() if name != "span"}
    if accounting:
        offsets = " + ".join(f"{count} {name}" for name, count in accounting.items())
        yield f"  - {window['accounting']['span']} offsets = {offsets}"
    for hop, matched in window["matched"].items():
        counts = [
            f"{count} {_verdict(window, verdict, cause)}" for at, verdict, cause, count in _found(window) if at == hop
        ]
        before = [f"{_before(window)[hop]} `before_baseline`"] if hop in _before(window) else []
        yield f"  - {hop}: {', '.join([f'{matched} matched', *before, *counts])}"
    for item in window["incidents"]:
        yield f"  - {_incident(*item)}"
    yield from (f"  - {sentence}" for sentence in window.get("messages", []))
    for limit in window.get("not_excluded", []):
        yield f"  - not excluded: {limit}"
    if window["reason"]:
        yield f"  - “{window['reason']}”"


def _incident(kind: str, partition: int | None, lo: int | None, hi: int | None) -> str:
    where = "" if partition is None else f" in partition {partition}"
    if lo is None:
        return f"incident `{kind}`{where}"
    return f"incident `{kind}`{where} at offset {lo}" if hi is None else f"incident `{kind}`{where}, [{lo}, {hi})"


def main() -> None:
    """Write the page from the results that are there."""
    PAGE.write_text(page(load(), json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
